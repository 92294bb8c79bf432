"""Panes: partials of windows, and their way to the lake.

- `panes`: the entries in memory; `cache`: which of them, and which are in the store alone
- `flights`: numbered frames on their way; `delivery`: what is sent, and what has landed
"""
