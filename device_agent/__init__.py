"""What runs on a device: a pure core, a durable store, sources and the process around them.

- `batch`: readings by column, the one way in; `intake`: what is accepted, repeated, refused
- `identities`, `panes`, `variables`: the core's state; `core`: the state machine over them
- `changes`: what must be durable before anything leaves; `store`: SQLite; `durable`: both in order
- `published`, `peers`: the fleet's partials, and what the others say; `beats`: what this one says
- `sources`: where readings come from; `runtime`: the process; `command`: the sub-commands
- `clock`, `counters`, `settings`, `lean`: when it is time, outcomes, options, a small process
"""
