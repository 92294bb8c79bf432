"""A fleet as an operator's command sees it, from what devices leave at the broker.

- `roster`: who is there; `onlooker`: all that is received, by kind
- `told`, `told_results`, `heard_alerts`, `heard_windows`: values, results, alerts and windows
"""
