"""The fleet on virtual time, and what it is judged by.

- `world`: devices, links, broker, landers and operator with every fault there is, from one seed
- `explore`: runs worlds from seed to seed; `planted`: plants bugs in them
- `simulate`: runs any program in a world
- `fleet`: a world that a test leads by hand; `operated`: one whose parameters an operator changes
- `comparison`: what a fleet computed beside the oracle; `row_alerts`: its alerts on rows, and
  `alerted` their law, seed by seed; `shared_contents`: its shared variables
- `tentative`, `control`: laws of windows that wait, and of windows with parameters, seed by seed
- `lake_landed`: a lander's real tables beside the lake of a world, seed by seed
- `lake_landers`: landers that share a lake with others, each a `lander_on_disk`, seed by seed
- `healing`: how soon a fleet is whole again after trouble, seed by seed
- `left_traces`: what is left of a shared set at a broker, seed by seed
- `oracle`: the truth, by sequential recomputation from raw readings
- `demo`: real processes on this machine, started as a user would
- `benchmarks`: what the claims about cost were measured with
"""
