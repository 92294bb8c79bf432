"""What runs on a device: a pure core made of parts, a durable store, sources, and the process.

In the order in which data flow through it:

- `sources`: readings come in batches, each with the cursor at which its source resumes
- `intake`: what is accepted, repeated, too late or refused, and how complete the readings are
- `fleet`: variables and their folds, what is exchanged with other devices, what they agree on
- `state`: panes on their way to the lake, stored variables, counters, facts: what must be durable
- `core`: the list of parts; `parts`: the contract that each keeps; `agent`: what they share
- `durable`: recall, change, commit, and only then publish; `runtime`: the process around it
- `command`: the sub-commands; `settings`, `clock`, `lean`: options, timers, a small process
"""
