"""Computations in which order matters: items in their places, replayed where one comes late.

- `plain`: what a state or a value may be, its encoding, and when two are the same
- `places`: where an item stands in the order, taken from its content
- `deltas`: the difference of two contents; a revision is one
- `scan`: what a scan is, the fold whose order matters; `synchronised`: what need not be in order
- `covers`: which events must be; `parted`: such a scan in parts, on devices and at an evaluator;
  `answers`: what devices send of it; `gathered`, `gathering`: who has answered which events;
  `reopening`: asks who counts later; `resuming`: where a device
  goes on that retains less; `stalls`: for people, what keeps rows from them
- `calling`: calls the user's functions
- `outputs`: outputs of scans, as events
- `log`: the items of one key in order, replayed from a change until the state agrees again; `tail`:
  what timers brought since the last of them; `runs`: of a device's half, with a state for hundreds
- `stages`: map, filter, flat_map, union, and a scan by key; `graph`: stages one after the other
- `cells`: items, packed in cells of ten seconds; `item_store`: what an evaluator stores of them
- `engine`: the live end of a graph, and what came late, block by block; `replays`: the block that
  was replayed last; `cutting`: where it cuts; `waiting_cells`: what it takes once an event in order
  behind it is known
- `results`: what leaves: rows that are tentative, final or revised; `absences`: who is missing in
  those over a fleet
- `inputs`: what an engine takes; `sent_items`, `sent_outputs`: how it travels
- `sent_rows`: how rows of results travel and land
- `oracle`: all of it by definition, from scratch
"""
