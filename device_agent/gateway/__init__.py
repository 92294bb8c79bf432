"""The gateway: windows over a whole fleet on any Pi, without Spark.

- `kept`: the state of a gateway, and the changes of a turn
- `panes`: the fleet's pane entries and their totals, as far as memory holds them
- `finality`: how far windows are final, and which rows are held back
- `unfinished`: the windows that are not final, by their ends
- `windows`: which windows a turn may have changed, and what their rows are now
- `failures`: folds of a user's own that raise something
- `streams`: the streams over the fleet; `fleet_history`: what the file holds of them
- `core`: messages in; rows, replies and results out: no clock, no file, no broker
- `store`: all of it in one SQLite file, one transaction a turn
- `partials`: partials as bytes of that file
- `results`: the newest rows as JSON for people, and as entities of Home Assistant
- `shown`: the topics that hold what people are shown, for a later process
- `alerts`: those on windows, and on results of streams over the fleet
- `run`: one run over an open file: messages in, one commit, and what leaves after it
- `process`: runs between a broker, the machine's clock and its file
- `table`: the rows as a lake's table shows them
"""
