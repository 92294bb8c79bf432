"""Streams on a device: the outputs of its program's scans, durable and revised.

- `history`: where items, states and rows of results stand in the store, for the engine, which is
  `lasp_edge.ordered.engine`
- `rows`: the rows of results, and which of them are new
- `stream_panes`: panes of windows over streams, and of rows of results
- `shares`: the events in order that gateways publish; `parted_history`: what a store has of them;
  `incomplete`: which answers to them may lack
  readings of a former life
- `streams`: the part of the agent: windows over streams, handlers of results, topics for people
"""
