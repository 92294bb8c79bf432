"""Where an agent's readings come from; all sources are pulled and none ever waits.

- `choice`: the table of sources; from `--source KIND:PLACE` and its options to a source
- `source`: the contract of a source and of its row in the table
- `host`: the machine it runs on; `jsonl_file`, `csv_file`: recorded rows; `mqtt_topic`: what others
  publish
- `recorded_file`: lines of a file from a byte offset; `replay`: rows at the pace that is asked for
- `mapping`: from a record's fields to readings; `times`: to microseconds since the epoch
"""
