"""What must be durable, and how it is kept.

- `changes`: one transaction's worth; `store`: SQLite; `stored`: variables as deltas and states
- `panes`: partials of windows on their way to the lake; `counters`: outcomes by name
"""
