"""Landing: what a lander that starts again reads back; decoding without the garbage collector."""

import gc
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from cloud_tier.lake.statements import statement_text
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from cloud_tier.lander.run import collector_off
from crdts import Member, Membership, Replica, Version
from lasp_edge.protocol.frontier import Listening, Tick
from tests.lasp_edge.protocol.support_frames import (
    BEGIN_US,
    NOW_US,
    acceptance,
    beat,
    command,
    record,
    rooms,
)

PLAN = rooms()


def test_a_lander_that_starts_again_knows_who_was_retired_and_every_incarnation(tmp_path):
    lake = LakeTables(tmp_path)
    lake.create(PLAN.columns)
    landing = Landing(lake, "one")
    assert (landing.membership(), landing.incarnations()) == (Membership(), {})
    commands = [command(1, seq=5), command(2, retired=False, seq=5), command(3, seq=9)]
    records = [record(frame) for frame in (*commands, beat(1, 10))]
    accepted = acceptance(PLAN).take(records)
    table = LandedColumns(PLAN).table(accepted, "one", Tick(1, Listening(NOW_US, BEGIN_US)))
    landing.land(1, table, accepted.refused)
    membership = Landing(lake, "two").membership()
    assert membership.retired == {"pi-0": Version(3, 7, 9)}
    assert Landing(lake, "two").incarnations() == {"pi-0": 3}
    again = acceptance(PLAN, membership).take(records[:3])
    assert (again.rows, again.refused) == ([], {}), "they are known"


def test_the_greatest_incarnation_of_a_device_counts_whichever_landed_last(tmp_path):
    lake = LakeTables(tmp_path)
    lake.create(PLAN.columns)
    landing, columns = Landing(lake, "one"), LandedColumns(PLAN)
    for number, incarnation in enumerate((3, 5, 4), 1):
        frame = replace(beat(1, 10), sender=Replica(incarnation, 7, "pi-0"))
        accepted = acceptance(PLAN).take([record(frame)])
        rows = columns.table(accepted, "one", Tick(number, Listening(NOW_US, BEGIN_US)))
        landing.land(number, rows, accepted.refused)
    assert Landing(lake, "two").incarnations() == {"pi-0": 5}


def test_a_lander_opens_no_file_whose_rows_are_merged_when_it_starts(tmp_path):
    """So its start costs the same after years; the file of the first segment is gone here."""
    lake = LakeTables(tmp_path)
    lake.create(PLAN.columns)
    landing = Landing(lake, "one")
    columns = LandedColumns(PLAN)
    segments = [(command(1, seq=5), beat(1, 10)), (command(2, retired=False, seq=5), beat(1, 11))]
    for number, frames in enumerate(segments, 1):
        accepted = acceptance(PLAN).take([record(frame) for frame in frames])
        rows = columns.table(accepted, "one", Tick(number, Listening(NOW_US, BEGIN_US)))
        landing.land(number, rows, accepted.refused)
        if number == 1:
            merge(lake, rows, DeltaTable(lake.landing).version())
            (merged,) = Path(lake.landing).glob("*.parquet")
    merged.unlink()
    again = Landing(lake, "two")
    assert again.membership() == Membership(
        {"pi-0": Member(2, retired=False, version=Version(3, 7, 5))}
    )
    assert again.incarnations() == {"pi-0": 3}


def merge(lake, rows, version):
    """Write rows to `lattice` as the job does."""
    day = pa.array([0] * rows.num_rows, pa.int32()).cast(pa.date32())
    stated = CommitProperties(custom_metadata={"userMetadata": statement_text(version, {}, None)})
    dated = rows.append_column("pane_date", day)
    write_deltalake(lake.lattice, dated, mode="append", commit_properties=stated)


def test_collector_is_off_while_decoding_and_on_again_whatever_happens():
    def fail():
        with collector_off():
            assert not gc.isenabled()
            raise RuntimeError

    assert gc.isenabled()
    with pytest.raises(RuntimeError):
        fail()
    assert gc.isenabled()
