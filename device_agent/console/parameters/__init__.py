"""Parameters as operators set them.

- `saying`: an entry as it is typed; `effect`: which windows it touches
- `roster`: which devices have received which entries; `own_windows`: the windows of one device
"""
