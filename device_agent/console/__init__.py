"""The things that people run: commands, the dashboard, files of options, and views of a fleet.

- `command`: the sub-commands of `lasp-edge` for devices and gateways
- `configuration`: an agent's file of options, and the command line above it
- `view`: a fleet as an operator's command sees it
- `parameters`: changes by operators, and their effect
- `dashboard`: a page that shows a fleet
- `own_windows`: the windows of one device, from its store; `own_rows`: these and results, printed
- `belonging`: whose store it is
- `start`: the script `lasp-edge`
- `small_process`: an agent's process without modules that it does not need
"""
