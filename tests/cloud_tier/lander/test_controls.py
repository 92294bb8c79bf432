"""The log of parameters lands, and a lander that starts again knows it."""

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cloud_tier.lake.coverage import fleet_coverage, liveness_of
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from crdts import ControlLog, Frontier, Replica
from crdts.frontier import BOTTOM_US
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.frontier import Listening, Tick
from lasp_edge.protocol.topics import Topics, topic_of
from tests.lasp_edge.language.support_controlled import greenhouse
from tests.support_commands import schedule_command

PLAN = greenhouse().plan()
NOW_US = 1_700_000_000_000_000


@pytest.fixture
def lake(tmp_path):
    lake = LakeTables(tmp_path)
    lake.create(PLAN.columns, parameters=PLAN.parameters)
    return lake


def taken(log, regimes):
    """Return what a lander accepts of a log, lane by lane."""
    topics = Topics(PLAN.name)
    acceptance = Acceptance(PLAN.pane_streams, (), topics, ("lake", "id"), control=regimes)
    frames = [
        schedule_command(Replica(1, 5, "operator"), number, *lane, log)
        for number, lane in enumerate(log.lanes(), 1)
    ]
    return acceptance.take(
        Record(NOW_US, topic_of(frame, topics), retained=True, payload=frame.encode())
        for frame in frames
    )


def both_said():
    """Return two logs of operators who did not know of each other, so of one number."""
    first = ControlLog().set("offset", "", 10, "1.5", "ann")
    second = ControlLog().set("offset", "", 10, "2.5", "bob")
    return first, second | second.set("above", "pi-1", 20, None, "bob")


def test_entries_land_side_by_side_and_are_read_back_as_the_log(lake):
    first, second = both_said()
    regimes = FleetRegimes(PLAN)
    landing = Landing(lake, "one")
    for number, log in enumerate((second, first, second), 1):
        accepted = taken(log, regimes)
        rows = LandedColumns(PLAN, regimes).table(accepted, "one", Tick(1, Listening(9, 0)))
        landing.land(number, rows, accepted.refused)
    assert landing.control_log() == first | second == regimes.log
    found = lake.table(lake.landing).to_pyarrow_table().to_pylist()
    controls = [row for row in found if row["kind"] == "control"]
    places = {(row["key"], row["device"], row["pane_us"]) for row in controls}
    assert places == {("offset", "", 10), ("above", "pi-1", 20)}


def test_a_promise_says_under_which_log_it_was_made_and_another_does_not_count(lake):
    first, second = both_said()
    regimes = FleetRegimes(PLAN)
    accepted = taken(first, regimes)
    accepted.promises |= Frontier().promise(Replica(1, 7, "pi-0"), 1, NOW_US, NOW_US)
    made = LandedColumns(PLAN, regimes).table(accepted, "one", Tick(1, Listening(NOW_US, 0)))
    day = pa.array([0] * made.num_rows, pa.date32())
    write_deltalake(lake.lattice, made.append_column("pane_date", day), mode="append")
    assert fleet_coverage(lake).frontier_us == NOW_US
    rows = made.to_pylist()
    said_since = (first | second).fingerprint()
    assert liveness_of(rows, said_since).promises.entries["pi-0"].low_us == BOTTOM_US
    assert liveness_of(rows, first.fingerprint()).promises.entries["pi-0"].low_us == NOW_US
