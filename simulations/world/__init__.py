"""A whole fleet on virtual time, with everything that can go wrong, from one seed.

In the order in which a run goes:

- `faults`: what may go wrong, how often, and the schedule of a run
- `scenario`: what a run is made from, drawn from a seed
- `programs`, `streamed`, `fleet_streamed`, `controlled`, `workload`: what devices compute, and
  measure
- `disk`, `clock`, `process`, `odd_lines`, `device`: a device
- `links`, `broker`, `operator`: whom it talks to; `sinks`: a `lander` in `landing`, and `gateway`,
  whose process runs as it is; `landed`: what they hold
- `world`: all of them, step by step; `misfortunes`, `hostile`: how faults befall it
- `truth`, `checks`, `acting`, `called_out`, `keyed_acts`, `judged_windows`, `scanning`,
  `fleet_scanning`, `fleet_names`: what must hold
- `run`: faults first, then heal, settle and demand
"""
