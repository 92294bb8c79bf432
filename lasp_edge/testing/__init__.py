"""What a test of a program needs; pytest finds the fixtures `replay` and `fleet` by itself.

- `laws`: whether folds, scans, programs and CRDTs keep their laws
- `replay`: readings or a recording through a fleet of real cores, and what comes of them
- `strategies`: readings of a program, for Hypothesis
- `pytest_plugin`: the fixtures

    from lasp_edge.testing import check_program, replay

    def test_my_program():
        check_program(program)
        rows = replay(program, "readings.csv", time="ts", device_field="device").window("by_room")
        assert rows[0]["mean"] == 22.0
"""

from lasp_edge.testing.laws import check_crdt, check_fold, check_program, check_scan, scan_outputs
from lasp_edge.testing.replay import ReplayedRows, ReplayOutcome, replay

__all__ = [
    "ReplayOutcome",
    "ReplayedRows",
    "check_crdt",
    "check_fold",
    "check_program",
    "check_scan",
    "replay",
    "scan_outputs",
]
