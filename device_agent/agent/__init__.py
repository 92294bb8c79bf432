"""What runs on a device: a pure core made of parts, a durable store, sources, and the process.

In the order in which data flow through it:

- `sources`: readings come in batches, each with the cursor at which its source resumes
- `timing`: which clock the device goes by
- `intake`: what is accepted, repeated, too late or refused, and how complete the readings are
- `panes`: partials of windows, on their way to the sinks; `rebuilding`: those that are made again
  where operators change parameters; `scans`: streams over the readings
- `variables`: samples, states and folds; `acting`: handlers of values, and alerts
- `fleet`: what is exchanged with other devices, and what they agree on
- `state`: the store, counters, and how variables are stored
- `core`: the list of parts; `parts`: the contract that each keeps; `agent`: what they share
- `changes`: what one transaction makes durable; `stored_rows`: the rows of the store
- `agent_parts`: which parts there are, and their order; `runtime`: the process around it;
  `ending`: when it ends by itself
- `watching`: health and figures for the outside; `settings`, `clock`: options, and the time
"""
