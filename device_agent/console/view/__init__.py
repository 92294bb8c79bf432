"""A fleet as an operator's command sees it, from the messages of its broker.

- `fleet_view`: all that is known, by kind; commands show parts of it
- `devices`: who is there; `commands`: an operator's frames; `values`: values, and who is behind
- `windows`: the rows that gateways publish; `published`: the shape of published JSON
"""
