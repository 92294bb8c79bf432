"""What users write: a program of events, variables, folds and windows, as a pure description.

In the order in which a declaration goes through it:

- `program`: `Program`, whose methods users call; `inputs`: those of events, parameters, variables
- `arguments`: checks what they pass; `signatures`: the same as types, for type checkers
- `draft`: the tables of what has been declared; `declarations`: what stands in them
- `derivation`, `derivations`: sets that follow from others, tried on the engine at once
- `declaring`, `derived_sets`: streams and sets that a program derives
- `ordering`: streams, as they are declared
- `streaming`: the graph of a plan's streams, which a tier runs
- `planning`: from the complete draft to the plan; `plan`: `Plan`, from which every tier starts
- `windowing`: windows, as they are declared, with or without parameters
- `parameters`: values that operators change; `forms`, `regimes`: windows and panes under their log
- `retracting`: which readings can be taken back
- `described`: what results mean, as plain data; `shown_names`: the names above their columns
- `meaning`: the meaning of a variable's values; `writes`: which variables a handler's code names
- `updates`: runs a plan's handlers over an event, and checks the changes that they ask for
"""
