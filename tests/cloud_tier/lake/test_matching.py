"""What is answered to a key in a lake whose readings of an order over the fleet have none."""

import pytest

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.deletion import forget
from cloud_tier.lake.matching import Wanted
from cloud_tier.lake.tables import ABSENT, LakeTables
from lasp_edge import Program, folds, scans
from lasp_edge.errors import NotFound, UsageError
from lasp_edge.protocol.lake_columns import ITEMS
from tests.cloud_tier.support_devices import BEGIN_US
from tests.cloud_tier.written_lakes import write


def keyed(event):
    return event.tags["room"]


@pytest.fixture
def tables(tmp_path):
    program = Program("plant")
    door = program.event("door", resolution="1")
    program.window("doors", source=door, fold=folds.count(), size_s=60, key=keyed)
    visits = program.scan("visits", source=door, key=keyed, scan=scans.sessions(gap_s=60))
    program.result(visits)
    made = LakeTables(tmp_path / "lake")
    prepare(program.plan(), made)
    cell = {**ABSENT, "kind": "pane", "device": "pi-c", "pane_us": BEGIN_US, "received_us": 0}
    pane = cell | {"key": "cellar", "stream": 1}
    write(made.lattice, [cell | {ITEMS: b"", "stream": 2}, pane])
    return made


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        (Wanted(key="celar"), NotFound, "nothing of the key 'celar'; keys: 'cellar'"),
        (Wanted(key="cellar"), UsageError, "no key; name a --device, not --key, perhaps with"),
        (Wanted("pi-c", "cellar"), UsageError, "no key; name --device pi-c alone, not --key"),
    ],
)
def test_a_typo_is_answered_first_and_then_that_readings_have_no_key(tables, wanted, error, words):
    with pytest.raises(error, match=words):
        forget(tables, wanted)
