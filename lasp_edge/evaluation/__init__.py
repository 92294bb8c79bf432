"""What an evaluator of streams keeps beside its engine, on a device and at a gateway alike.

- `history`: items, states and rows in the store
- `rows`: the rows of results, live and stored; `publishing`: the newest of each key, as JSON
"""
