"""An agent's configuration file, and the command line above it.

- `document`: a TOML file whose mistakes are told with their line
- `settings_of_file`: its keys, checked against the options of the command line
- `source_tables`: its sources and mappings
- `configured`: all of a file
- `arguments`: file and command line together; `alert_options`: those of alerts
"""
