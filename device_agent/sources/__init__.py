"""Where an agent's readings come from; all sources are pulled and none ever waits.

- `source`: what a source is
- `host`: the machine it runs on; `jsonl_file`, `csv_file`: recorded rows, over `replay`;
  `mqtt_topic`: what others publish
- `mapping`: from a record's fields to readings; `times`: to microseconds since the epoch
- `choice`: from `--source KIND:WHERE` to a source
"""

from device_agent.sources.choice import SourceOptions, source_from_spec
from device_agent.sources.source import Source

__all__ = ["Source", "SourceOptions", "source_from_spec"]
