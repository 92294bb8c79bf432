"""Programs to read, run and copy.

- `greenhouse`: the fleet's average temperature, and a sliding window of it by room
- `machines`: how busy machines are; needs no sensor, and `lasp-edge new` begins with it
- `talk`: the listing of the talk that lasp-edge follows
"""
