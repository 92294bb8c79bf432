"""What is durable: the store, and what is kept of variables and counted outcomes.

- `store`: SQLite; `stored`: variables as deltas and states; `counters`: outcomes by name
"""
