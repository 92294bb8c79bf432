"""`lasp-edge simulate`: a program in a virtual fleet.

- `sampled_run`: a run of a program, sampled as it goes, and held against the oracle
- `plot`: what was sampled, as one HTML page
- `command`: the sub-command
"""
