"""A column of windows is declared once: one more is in a lake, a gateway's file and commands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lasp_edge
from device_agent.gateway.store import FleetStore

_FIELD, _MORE = "    excluded: Annotated[", "Annotated[int, Recorded('long', is_result=True)]"
_IN_BOTH = """
import sys
from pathlib import Path

from cloud_tier.job import windows
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from crdts import ControlLog
from device_agent.gateway.kept import FleetChanges
from device_agent.gateway.store import FleetStore
from device_agent.gateway.table import meaning_of
from lasp_edge.language.draft import LAKE_COLUMNS
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from lasp_edge.tool.command_line import main
from tests.cloud_tier.support_devices import rooms
from tests.cloud_tier.written_lakes import write

directory, plan = Path(sys.argv[1]), rooms()
stream = plan.windows["totals"].stream
row = FleetRow(
    WindowStart("totals", "", 0),
    plan.windows["totals"].size_us,
    (7,),
    *(2, 3, 40, ("attic", "hall"), "final", 1, 90, stream),
)
assert row.result() != row._replace(shed=41).result()
store = FleetStore(directory / "gateway")
store.put_facts({"program": meaning_of(plan, ControlLog()), "store": "s-1"})
store.commit(FleetChanges(rows=[row]))
assert store.row(row.at) == row
store.close()
lake = LakeTables(directory / "lake")
prepare(plan, lake)
about = {**row.at._asdict(), "end_us": row.end_us, "total_q": 7}
write(lake.windows, [{**about, **row.record()}])
assert "shed" in windows.read_columns(())
assert "shed" in LAKE_COLUMNS
for place in ("gateway", "lake"):
    main(["windows", "totals", f"--{place}", str(directory / place), "--json"])
    main(["windows", "totals", f"--{place}", str(directory / place), "--csv"])
"""
_FORMER_FILE = """
import sys
from pathlib import Path

from device_agent.gateway.store import FleetStore
from lasp_edge.errors import UsageError

try:
    FleetStore(Path(sys.argv[1]))
except UsageError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def with_one_more(tmp_path_factory):
    """The house's library with a column `shed` more."""
    library = Path(lasp_edge.__file__).parent
    copy = tmp_path_factory.mktemp("library") / library.name
    shutil.copytree(library, copy, ignore=shutil.ignore_patterns("__pycache__"))
    rows = copy / "protocol" / "window_rows.py"
    text = rows.read_text(encoding="utf-8")
    assert text.count(_FIELD) == 1
    rows.write_text(text.replace(_FIELD, f"    shed: {_MORE}\n{_FIELD}"), encoding="utf-8")

    def printed(script, directory):
        command = [sys.executable, "-c", script, str(directory)]
        run = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=copy.parent,  # is searched first
            env=os.environ | {"PYTHONPATH": str(library.parent)},
        )
        assert run.returncode == 0, run.stderr
        return run.stdout.splitlines()

    return printed


def test_a_field_more_is_a_column_of_lake_gateway_and_commands(tmp_path, with_one_more):
    of_gateway, *csv, of_lake, head, shown = with_one_more(_IN_BOTH, tmp_path)
    assert json.loads(of_gateway) == json.loads(of_lake)
    assert json.loads(of_gateway) | {"shed": 40, "excluded": "attic,hall"} == json.loads(of_lake)
    assert csv == [head, shown]
    assert dict(zip(head.split(","), shown.split(","), strict=True))["shed"] == "40"


def test_a_gateways_file_without_the_field_is_refused_in_one_line(tmp_path, with_one_more):
    FleetStore(tmp_path).close()
    (line,) = with_one_more(_FORMER_FILE, tmp_path)
    assert "has the store format 1, and this lasp-edge reads 2: start the gateway" in line
