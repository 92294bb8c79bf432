"""What is left out before Spark sees it cannot change a result. No Spark here."""

import random

import pyarrow as pa
import pytest

from cloud_tier.job.dynamic import CurrentRow
from cloud_tier.job.prefilter import changed_keys, newest
from crdts import Membership, Version
from lasp_edge import folds
from lasp_edge.protocol.inputs import entry_hash, inputs_digest, membership_text, variable_digest
from tests.lasp_edge.support_programs import averaged


def program(stale_after_s=None):
    stale = {"stale_after_s": stale_after_s}
    return averaged("p", folds.sum(), key=lambda e: e.tags["room"], dynamic=stale).plan()


NOBODY = Membership()
PLAN = program()
(FOLD,) = PLAN.dynamic_folds.values()
STREAM = FOLD.source.stream


def entry(key, device, changed, total):
    return {
        "stream": STREAM,
        "key": key,
        "device": device,
        "incarnation": 1,
        "nonce": 7,
        "changed": changed,
        "total_q": total,
    }


def current(rows, membership=NOBODY, fold=FOLD):
    """Return the current row of each key, as the devices' own definition of `inputs` gives it."""
    found = {}
    for key in {row["key"] for row in rows} - {None}:
        own = [r for r in rows if r["key"] == key and r["device"] not in membership.retired]
        hashes = [
            entry_hash(key, r["device"], Version(1, 7, r["changed"]), (r["total_q"],)) for r in own
        ]
        digest = variable_digest(hashes, membership_text(membership))
        found["everywhere", key] = CurrentRow(
            0, inputs_digest(digest, fold.stream), fold.stream, len(own)
        )
    return found


ROWS = [entry("attic", "a", 1, 5), entry("attic", "b", 2, 6), entry("hall", "a", 3, 7)]


def sifted(rows, before, membership=NOBODY):
    table, known = changed_keys(pa.Table.from_pylist(rows), [FOLD], membership, before)
    return table.to_pylist(), known


def test_keys_with_equal_inputs_are_left_out():
    assert sifted(ROWS, current(ROWS)) == ([], {})


def test_changed_key_is_kept_with_the_entries_of_all_devices():
    changed = [*ROWS[:1], entry("attic", "b", 9, 6), ROWS[2]]
    rows, known = sifted(changed, current(ROWS))
    assert rows == changed[:2]
    assert set(known) == {("everywhere", "attic")}


def test_key_that_went_is_kept_once():
    rows, known = sifted(ROWS[:2], current(ROWS))
    assert (rows, set(known)) == ([], {("everywhere", "hall")})
    gone = {at: row._replace(devices_in=0) for at, row in known.items()}
    assert sifted(ROWS[:2], {**current(ROWS[:2]), **gone}) == ([], {})


def test_retired_device_makes_all_keys_differ():
    membership = Membership().retire("b", Version(1, 7, 9))
    assert len(sifted(ROWS, current(ROWS), membership)[0]) == 3
    assert sifted(ROWS, current(ROWS, membership), membership) == ([], {})


def test_entries_of_a_clone_are_for_spark_to_decide():
    clones = [*ROWS, entry("hall", "a", 3, 8)]
    rows, _ = sifted(clones, current(ROWS))
    assert rows == clones[2:]


def test_nothing_is_left_out_where_silent_devices_do_not_count():
    plan = program(stale_after_s=60)
    (fold,) = plan.dynamic_folds.values()
    rows = [row | {"stream": fold.source.stream} for row in ROWS]
    table, _ = changed_keys(pa.Table.from_pylist(rows), [fold], NOBODY, current(rows, fold=fold))
    assert table.num_rows == 3


@pytest.mark.parametrize("seed", range(20))
def test_newest_rows_are_those_of_the_greatest_version(seed):
    draw = random.Random(seed)
    rows = [
        {
            "stream": draw.randrange(2),
            "device": draw.choice("ab"),
            "incarnation": draw.randrange(3),
            "nonce": draw.randrange(2),
            "seq": draw.randrange(4),
        }
        for _ in range(30)
    ]

    def version(row):
        return row["incarnation"], row["nonce"], row["seq"]

    def same(row, other):
        return (row["stream"], row["device"]) == (other["stream"], other["device"])

    expected = [
        row for row in rows if version(row) == max(version(o) for o in rows if same(o, row))
    ]
    found = newest(
        pa.Table.from_pylist(rows), ["stream", "device"], ["incarnation", "nonce", "seq"]
    )
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected))
