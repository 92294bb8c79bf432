"""Results for people and for Home Assistant, as agent and gateway publish them.

- `retained`: topics that hold what is current; `topic_notes`: those that a store knows
- `discovery`: entities of Home Assistant
"""
