"""What is durable: the store, and what is kept of variables and counted outcomes.

- `store`: SQLite, in the `form` of this release; `stored`: variables as deltas and states;
  `counters`: outcomes by name
"""
