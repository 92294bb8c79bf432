"""The demo: real processes, started as a user would, and their results checked.

- `command`: `lasp-edge demo`; `program`: what its devices compute unless told otherwise
- `story`: what happens, in order; `evening`: without Spark; `ending`: what comes of it
- `mishaps`: what befalls one device; `chaos`: seeded accidents; `operator`, `told`: what is said
  of parameters
- `stage`: who takes part; `devices`, `broker`, `relay`: what is killed, cut off and counted
- `merging`: who keeps the windows; `outages`: how long devices were away
- `processes`, `watchdog`: what is started is ended; `trouble`: why there is no result
- `recording`: who is in a recorded file; `lake`: what the commands print
- `evidence`, `checks`, `streamed`, `finality`: the results recomputed; `traffic`: bytes counted
- `live`: what is seen meanwhile
"""
