"""The demo: installed commands as processes, started as a user would, and their results checked.

In the order of execution:

- `command`: `lasp-edge demo`; `program`: of its devices, by default
- `recording`: which devices are in a recorded file; `rooms`: simulated rooms and their sensors
- `site`: broker, merger and devices; `devices`: each an agent on its own wire; `live`: the table
- `story`: the events in order; `settings`: an operator's changes of parameters
- `evidence`: the output of commands at the end; `checks`, `finality`: whether it is right
- `ending`: the result, the bytes, the commands to type next
"""
