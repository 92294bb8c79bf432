"""What a device exchanges with the others, and what it knows of them.

- `exchange`: own entries are published, the others' are joined
- `fence`: which replica it is; `claims`: lives of it that others name; `witnessing`: whom it hears,
  and for whom it vouches
- `beats`: what the device says of itself
- `agreement`: reports of the others; `commands`: of operators; `programs`: which devices
  run another program or release
- `results`: all of it for people; `shown`: the topics that hold what they are shown
"""
