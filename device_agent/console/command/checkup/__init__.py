"""The checks of `lasp-edge doctor`: one small function each, and a table of them.

- `result`: the result of a check, and the agent that it looks at
- `machine`: clock, disk, wear, systemd
- `starting`: options, program and data directory
- `sensing`: sources and their sensors, and the keys of their readings
- `topics`: which topics a broker publishes on, and which are like another one
- `contact`: a short connection to the broker
- `network`: broker, name and programs of the fleet
- `checks`: the table
"""
