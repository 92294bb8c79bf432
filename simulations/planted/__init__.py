"""Bugs that are planted to see that the simulator finds them: `python -m simulations.planted`.

- `bug`: what a planted bug is, and the table of all
- `of_the_store`, `of_delivery`, `of_the_fleet`, `of_lives`, `of_windows`, `of_acting`, `of_scans`,
  `of_waiting`, `of_control`, `of_promises`, `of_the_gateway`, `of_fleet_order`, `of_lake_landed`,
  `of_lake_landers`, `of_left_traces`, `of_healing`, `of_values`: the bugs; each law of the
  simulator has one that breaks it, and the others are those that no unit test finds
- `hunt`: runs seeds under a bug until one fails
"""
