"""Real processes on this machine, for the demo, the benchmarks and the tests.

- `process`: commands that are started, killed and started again; `watchdog`: ends them in any case
- `broker`: a private MQTT broker; `relay`: a wire to it that counts bytes and can be cut
"""
