"""Parameters as operators set them.

- `change`: an entry as it is typed; `effect`: the panes and windows that it touches
"""
