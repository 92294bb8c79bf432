"""What runs on a device: a pure core, a durable store, sources and the process around them.

- `batch`: readings by column, the one way in; `intake`: what is accepted, repeated, refused
- `identities`, `panes`, `variables`: the core's state; `core`: the state machine over them
- `changes`: what must be durable before anything leaves; `store`: SQLite; `durable`: both in order
- `sources`: where readings come from; `runtime`: the process; `command`: the sub-commands
"""
