"""The demo: real processes, started as a user would, and their results checked.

- `command`: `lasp-edge demo`; `program`: what its devices compute unless told otherwise
- `story`: what happens, in order; `chaos`: seeded accidents; `ending`: what comes of it
- `stage`: who takes part; `devices`, `broker`, `relay`: what is killed, cut off and counted
- `processes`, `watchdog`: what is started is ended; `trouble`: why there is no result
- `recording`: who is in a recorded file; `lake`: what the commands print
- `checks`, `traffic`: the results recomputed; the bytes counted
- `live`: what is seen meanwhile
"""
