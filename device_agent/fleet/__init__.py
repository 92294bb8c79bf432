"""What a device exchanges with the others, and what it knows of them.

- `exchange`: own entries are published, the others' are joined
- `beats`: what the device says of itself; `succession`: which replica it is
- `peers`, `agreement`: what the others report; `members`: who is retired; `programs`: who runs
  another program or release
- `results`: all of it for people; `roster`: a fleet as an operator's command sees it
"""
