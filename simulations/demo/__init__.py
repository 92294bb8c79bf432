"""The demo: installed commands as processes, started as a user would, and their results checked.

In the order of execution:

- `command`: `lasp-edge demo`; `program`: of its devices, by default
- `recording`: which devices are in a recorded file; `rooms`: what simulated rooms measure
- `site`: who takes part; `devices`: agents that are killed, cut off and counted; `live`: the table
- `story`: what happens; `settings`: what an operator changes
- `evidence`: what commands print at the end; `checks`, `finality`: whether it is right
- `ending`: what comes of it, bytes counted, what to type next
"""
