"""What an evaluator of streams keeps beside its engine, on a device, at a gateway and in the job.

- `history`: items, states and rows in the store
- `fleet`: streams over the items of all devices, at a gateway and in the job
- `parted`: scans with local events; `reconciling`: their events in order after a start
- `rows`: the rows of results, live and stored, and the newest of each key; `placed_rows`: which of
  several is the latest of its key
- `conditions`: whether the condition of an alert has fired
"""
