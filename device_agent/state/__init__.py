"""What must be durable, and how it is kept.

- `changes`: one transaction's worth; `facts`: single values; `store`: SQLite
- `panes`: partials of windows, in memory; `pane_cache`: which of them; `flights`, `delivery`: their
  way to the lake
- `stored`: variables as deltas and states; `counters`: outcomes by name
"""
