"""Panes: partials of windows, and their way to the sinks.

- `panes`: the entries in memory; `planned`: of which streams
- `cache`: which entries are in memory, and which are in the store alone
- `sinks`, `sink`: who holds panes and acknowledges them; `flights`: frames on their way to one
- `sender`: what leaves, and when; `delivery`: what has landed, and where
- `unlanded`: how old what has not landed can be
- `undelivered`: what each sink has not taken yet, for people
"""
