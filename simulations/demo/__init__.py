"""The demo: real processes, started as a user would, and their results checked.

- `command`: `lasp-edge demo`; `program`: what its devices compute unless told otherwise
- `story`: what happens, in order; `stage`: who takes part; `chaos`: seeded accidents
- `processes`, `watchdog`, `relay`, `broker`, `devices`: what is started, counted, cut and killed
- `recording`: who is in a recorded file; `lake`: what the tables say
- `checks`, `traffic`: the results recomputed; the bytes counted
- `live`: what is seen meanwhile
"""
