"""Panes that are made of readings once more: of windows that parameters change, or that filter.

- `missing`: the part that folds what comes into the panes that are there, and makes the others
- `counting`: what readings count as, and in which panes

Only agents with such windows import this package.
"""
