"""Programs to read, run and copy.

- `greenhouse`: the fleet's average temperature, and a sliding window of it by room
- `talk`: the listing of the talk that lasp-edge follows
"""
