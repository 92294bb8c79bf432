"""The fleet on virtual time, and what it is judged by.

- `oracle`: the truth, by sequential recomputation from raw readings
- `demo`: real processes on this machine, started as a user would
"""
