"""The checks of a program before it runs on a fleet: `lasp-edge check`.

- `laws`: what every fold must keep
- `search`: looks for a case that breaks a law, and makes it small
- `programs`: the folds of a program, and their verdicts
- `identities`: what identifies each window and fold (`--plan`)
- `streams`, `scans`, `determinism`, `ties`: functions of streams, and what a late reading costs;
  `clocks`, `rounding`: functions of `time`, and of `math` and numpy; `steps`: steps of a reading
  that are taken for units; `spans`: times in another unit; `rates`: those that are too steep or
  too flat; `meters`: sums of what a meter shows; `cuts`, `settings`, `set_orders`: numbers that are
  cut where no double is, what a process is set to, and the order of a set
- `memory`, `alerts`, `room`, `growth`: what functions remember, what no value reaches, what is full
- `endless`: functions that do not return
- `fields`, `handled`: what the step of a field loses, and what handlers cut off readings
- `unlike`: comparisons that never hold, and pairs of which a half may be None
- `unasked`: parameters that no function of a window asks for
- `pools`, `synchronised`: the laws of synchronised scans, and the events that they are tried on
- `replays`: what rows of a scan over the fleet cost that wait for no device
- `removals`: sets of which nothing is taken out
- `handlers`, `trial`: functions that cannot be called, or fail on made-up readings
- `texts`, `record`: which function changed its text but not its version
- `looks`: all that is seen before the program runs as a whole; `command`: the command
"""
