"""An agent's configuration file, and the command line above it.

- `agent_options`: the options of an agent; `alert_options`: those of alerts
- `document`: a TOML file whose mistakes are reported with their line
- `configured`: its keys, checked against the options of the command line
- `source_tables`: its sources and mappings
- `arguments`: file and command line together
"""
