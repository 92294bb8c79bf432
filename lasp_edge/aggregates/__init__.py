"""Partials kept up to date: of one device's samples, and over the fleet.

In the order in which a reading's effect passes through them:

- `sliding`: the total of partials that come and go
- `local`: `fold`: the partial of what a set holds on this device
- `fleet`: `fold_dynamic`: every device's newest partials by key, and their combination
"""
