"""What a device does where operators change parameters while it runs.

- `log`: what operators said, kept and repeated
- `history`: the readings that a device keeps as identities
- `windows`: panes of windows with parameters: readings that come, and panes that are made anew

Only agents of programs with parameters import this package.
"""
