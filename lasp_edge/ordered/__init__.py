"""Computations in which order matters: items in their places, replayed where one comes late.

- `plain`: what a state or a value may be, its encoding, and when two are the same
- `places`: where an item stands in the order, taken from its content
- `deltas`: the difference of two contents; a revision is one
- `scan`: what a scan is, the fold whose order matters; `calling`: calls the user's functions
- `sayings`: what a scan says, as events
- `log`: the items of one key in order, replayed from a change until the state agrees again
- `stages`: map, filter, flat_map, union, and a scan by key; `graph`: stages one after the other
- `results`: what leaves: rows that are tentative, final or revised
- `said`: how rows of results travel and land
- `oracle`: all of it by definition, from scratch
"""
