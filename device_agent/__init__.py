"""What runs on a device: a pure core, a durable store, sources and the process around them.

- `batch`: readings by column, the one way in; `intake`: what is accepted, repeated, refused, one by
  one; `columns`: the same for whole columns; `taken`, `asked`: what they brought, joined once a
  commit
- `identities`, `panes`, `variables`: the core's state; `core`: the state machine over them
- `sets`: a set for each key; `local_folds`: their folds; `room`: what fits a frame; `derived`: sets
  that follow from shared ones
- `published`, `peers`, `members`: the fleet's partials, what the others say, who counts; `beats`:
  what this one says; `results`: all of it for people; `roster`: what an operator hears and says
- `changes`: what must be durable before anything leaves; `store`: SQLite; `stored`: variables as
  deltas and states; `durable`: core and store in the right order
- `sources`: where readings come from; `runtime`: the process; `command`: the sub-commands
- `clock`, `counters`, `settings`, `lean`: when it is time, outcomes, options, a small process
"""
