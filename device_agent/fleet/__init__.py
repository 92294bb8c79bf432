"""What a device shares with the others, and what it knows of them.

- `variables`, `sets`, `asked`, `room`: the device's own variables; `derived`: what follows
- `peers`, `members`, `beats`: who is there, who counts, what this device says of itself
- `results`: all of it for people; `roster`: what an operator hears and says
"""
