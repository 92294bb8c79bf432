"""Programs to read, run and copy.

- `greenhouse`: the fleet's average temperature, and a sliding window of it by room
- `hothouse`: an alarm's threshold and thermometers' offsets that operators change while it runs
- `machines`: how busy machines are; needs no sensor, and `lasp-edge new` begins with it
- `talk`: the listing of the talk that lasp-edge follows
"""
