"""Acting on values: what a device does when a fold's value moves, or reaches a level.

- `current`: what each fold is worth now, on this device
- `watch`: which keys of a watched value moved, and whether its condition has fired
- `newest_rows`: the newest final row of each key of a result, for alerts that watch one
- `reactions`: the program's handlers of values; `alerts`: its alerts, published and handed on
- `records`: what both remember; `acting`: all of these, as the core takes them
- `effects`: the command or webhook that an alert calls, in a thread
"""
