"""What a device does where operators change parameters while it runs.

- `log`: the operators' entries, kept and repeated

Only agents of programs with parameters import this package.
"""
