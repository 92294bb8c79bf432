"""Bugs that are planted to see that the simulator finds them: `python -m simulations.planted`.

- `bug`: what a planted bug is, and the table of all
- `of_the_store`, `of_delivery`, `of_the_fleet`, `of_windows`, `of_omission`, `of_acting`,
  `of_scans`, `of_waiting`, `of_control`: the bugs
- `hunt`: runs seeds under a bug until one fails
"""
