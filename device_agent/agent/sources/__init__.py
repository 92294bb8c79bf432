"""Where an agent's readings come from; all sources are pulled and none ever waits.

- `choice`: the table of sources; from `--source KIND:PLACE` and its options to a source
- `source`: the contract of a source and of its row in the table
- `guarded`: a source that may break, and does not take the agent with it
- `jsonl_file`, `csv_file`: recorded rows; `stdin_lines`: those of another program
- `mqtt_topic`: what others publish; `topic_pattern`: what topics say; `retained`: what is no news
- `host`: the machine it runs on; `hwmon`, `iio`, `onewire`: the kernel's sensors; `sensors`: what
  these three share; `periods`: when they are asked
- `recorded_file`: lines of a file from a byte offset; `replay`: rows at the pace that is asked for
- `mapping`: from a record's fields to readings, and by column `event_columns`;
  `mapping_options`: what a user says of it; `ready`: mappings by name
- `tags`: from fields to tags; `fields`: where a value is; `values`: which number it is
- `times`: to microseconds since the epoch; `time_zones`: of whose clock; `nearest`: the name that a
  mistyped one means
"""
