"""What a lake's job notes of scans that stand, for those who look at the lake."""

from pathlib import Path

from cloud_tier.lake.held import HELD, note_held
from cloud_tier.lake.status import JOB_LOCK
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main
from lasp_edge.tool.local_events import stands
from tests.cloud_tier.lake.support_promises import ROWS, merge
from tests.cloud_tier.lake.test_status import report, running, tables

__all__ = ["tables"]


def test_the_report_has_what_a_job_that_runs_prints_of_scans_that_stand(tables, capsys):
    merge(tables, ROWS)
    words = stands("odd", 0, ["attic"])
    note_held(tables, [words])
    assert report(tables)["held"] == [], "the job has ended: nobody knows what is so now"
    with running(Path(tables.root, JOB_LOCK)):
        assert report(tables)["held"] == [words]
        assert main(["lake", "status", "--lake", tables.root]) == Exit.FINE
        assert f"held     {words}\n" in capsys.readouterr().out
        note_held(tables, [])
        assert report(tables)["held"] == []
        Path(tables.root, HELD).write_text("{")
        assert report(tables)["held"] == []
