"""The built-in scans under the names by which users make them: `scans.differences()`.

Who writes a scan of their own extends `scans.Scan`, or `scans.Synchronised`, which says what need
not be in order across devices.

Each is `zero`, `step` and perhaps a timer (`lasp_edge.ordered.scan`), in a file of its own with its
laws and its cost: how many results a late event revises.

- `last`, `every`: the last n, and each n; `running`: everything so far
- `differences`, `rate`, `changes`: against the one before; `distinct`: against those before
- `debounce`, `hysteresis`: without what flutters; `held_for`: a condition for a while
- `sessions`: what comes without a gap; `pattern`: one after the other, or nothing in time
- `as_of`: two events of one moment; `top`: the greatest so far; `time_weighted_mean`: over time
- `loop`: a cycle within a key
"""

from lasp_edge.ordered.scan import Scan
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.scans.as_of import AsOfJoin
from lasp_edge.scans.changes import ValueChanges
from lasp_edge.scans.debounce import SteadyValues
from lasp_edge.scans.differences import ConsecutiveDifferences
from lasp_edge.scans.distinct import FirstOccurrences
from lasp_edge.scans.every import CountWindows
from lasp_edge.scans.held_for import ConditionHeld
from lasp_edge.scans.hysteresis import TwoLevels
from lasp_edge.scans.last import LastValues
from lasp_edge.scans.loop import Loop
from lasp_edge.scans.pattern import Pattern
from lasp_edge.scans.rate import ChangeRate
from lasp_edge.scans.running import RunningState
from lasp_edge.scans.sessions import Sessions
from lasp_edge.scans.time_weighted import TimeWeightedMean
from lasp_edge.scans.top import TopValues

as_of = AsOfJoin
changes = ValueChanges
debounce = SteadyValues
differences = ConsecutiveDifferences
distinct = FirstOccurrences
every = CountWindows
held_for = ConditionHeld
hysteresis = TwoLevels
last = LastValues
loop = Loop
pattern = Pattern
rate = ChangeRate
running = RunningState
sessions = Sessions
time_weighted_mean = TimeWeightedMean
top = TopValues

__all__ = [
    "Scan",
    "Synchronised",
    "as_of",
    "changes",
    "debounce",
    "differences",
    "distinct",
    "every",
    "held_for",
    "hysteresis",
    "last",
    "loop",
    "pattern",
    "rate",
    "running",
    "sessions",
    "time_weighted_mean",
    "top",
]
