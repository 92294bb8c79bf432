"""What `lasp-edge doctor` looks at: one small function a check, and a table of them.

- `result`: what a check says, and what it is asked about
- `machine`: clock, disk, wear, systemd
- `keeping`: the data directory
- `sensing`: sources and their sensors, and the keys of their readings
- `hearing`: a short connection to the broker
- `network`: broker, name and programs of the fleet
- `checks`: the table
"""
