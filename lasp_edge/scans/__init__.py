"""The built-in scans under the names by which users make them: `scans.differences()`.

Who writes a scan of their own extends `scans.Scan`.

Each is `zero`, `step` and perhaps a timer (`lasp_edge.ordered.scan`), in a file of its own with its
laws and its cost: how many results a late event revises.

- `last`, `every`: the last n, and each n; `running`: everything so far
- `differences`, `changes`: against the one before; `distinct`: against those before
- `sessions`: what comes without a gap; `pattern`: one after the other, or nothing in time
- `as_of`: two events of one moment; `top`: the greatest so far
- `loop`: a cycle within a key
"""

from lasp_edge.ordered.scan import Scan
from lasp_edge.scans.as_of import AsOfJoin
from lasp_edge.scans.changes import ValueChanges
from lasp_edge.scans.differences import ConsecutiveDifferences
from lasp_edge.scans.distinct import FirstOccurrences
from lasp_edge.scans.every import CountWindows
from lasp_edge.scans.last import LastValues
from lasp_edge.scans.loop import Loop
from lasp_edge.scans.pattern import Pattern
from lasp_edge.scans.running import RunningState
from lasp_edge.scans.sessions import Sessions
from lasp_edge.scans.top import TopValues

as_of = AsOfJoin
changes = ValueChanges
differences = ConsecutiveDifferences
distinct = FirstOccurrences
every = CountWindows
last = LastValues
loop = Loop
pattern = Pattern
running = RunningState
sessions = Sessions
top = TopValues

__all__ = [
    "Scan",
    "as_of",
    "changes",
    "differences",
    "distinct",
    "every",
    "last",
    "loop",
    "pattern",
    "running",
    "sessions",
    "top",
]
