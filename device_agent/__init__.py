"""What runs at the edge: the agent of a device, a gateway, and the commands for both.

- `agent`: what runs on one device
- `gateway`: the windows of a whole fleet on any Pi, without Spark
- `console`: what people run, and what it shows of a fleet; nothing here imports it
- `outputs`: results as agent and gateway publish them for people and for Home Assistant
- `storage`: the SQLite file of agent and gateway, sealed row by row
"""
