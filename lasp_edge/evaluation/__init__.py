"""What an evaluator of streams keeps beside its engine, on a device, at a gateway and in the job.

- `history`: items, states and rows in the store
- `fleet`: streams over the items of all devices, at a gateway and in the job
- `parted`: scans with local events; `reconciling`: their events in order after a start
- `rows`: the rows of results, live and stored; `publishing`: the newest of each key, as JSON
- `conditions`: whether the condition of an alert has fired
"""
