"""What time it is: which clock a device goes by, and the readings that wait until it has one.

- `witnesses`: the clocks that peers and landers tell; `judgement`: which clock is trusted
- `timing`: both as a part of the agent; `waiting`: readings that cannot be placed in time yet
- `system_clock`: the machine's clocks, read outside the core
"""
