"""Folds that combine by themselves: their Python runs in Spark, and gives what devices give."""

import sys
from functools import reduce
from types import ModuleType

import pytest

from cloud_tier.job import own_combine
from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.checking.identities import identities
from lasp_edge.checking.laws import combine_follows_the_columns
from lasp_edge.checking.programs import verdicts
from lasp_edge.errors import UsageError
from lasp_edge.folds.bounds import Bound
from lasp_edge.language.described import definition_of, descriptions
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, row
from tests.cloud_tier.support_own_fold import Parity

pytestmark = pytest.mark.spark

VALUES = {"pi-0": 12, "pi-1": 10, "pi-2": 7}


def mixed():
    """Return a program with a fold that combines by itself beside a built-in one."""
    program = Program("mixed")
    meter = program.event("meter")
    last = program.declare_dynamic(BoundedLWWSet(bound=5), "last")
    program.collect(meter, into=last)
    program.fold_dynamic(program.fold(last, Parity(), "here"), "parity_now")
    program.window("parities", source=meter, fold=Parity(), size_s=20, slide_s=10)
    program.window("sums", source=meter, fold=folds.sum(), size_s=20, slide_s=10)
    return program.plan()


def test_a_fold_of_its_own_gives_in_spark_what_it_gives_on_devices(spark, tmp_path):
    plan = mixed()
    lake = LakeUnderTest(spark, plan, tmp_path)
    parities, sums = plan.windows["parities"], plan.windows["sums"]
    local = plan.local_folds["here"]
    rows = []
    for at, (device, value) in enumerate(VALUES.items()):
        pane_us = BEGIN_US + at % 2 * 10 * SECOND_US
        pane = {"pane_us": pane_us, "key": ""}
        rows.append(row("pane", device, 1, 7, 1, stream=parities.stream, parity_q=value, **pane))
        of_sum = dict.fromkeys(sums.fold.columns_named, value)
        rows.append(row("pane", device, 1, 7, 2, stream=sums.stream, **of_sum, **pane))
        rows.append(row("variable", device, 1, 7, 3, stream=local.stream, key="", parity_q=value))
    lake.step(rows[:5])
    lake.step(rows)
    fold = Parity()
    whole = reduce(fold.combine, [(value,) for value in VALUES.values()])
    found = lake.current()
    assert found["parities", "", BEGIN_US] == (whole, 3) == ((12 ^ 10 ^ 7,), 3)
    assert found["parities", "", BEGIN_US + 10 * SECOND_US] == ((10,), 1)
    assert found["sums", "", BEGIN_US][0] == tuple([29] * len(sums.fold.columns))
    value = lake.globals()["parity_now", ""]
    assert (value.partial, value.devices_in) == (whole, 3)


def test_devices_under_an_older_bound_do_not_count(spark, tmp_path):
    program = Program("bounds")
    meter = program.event("meter", resolution="0.1")
    bound = program.parameter("last", "5")
    last = program.declare_dynamic(BoundedLWWSet(bound=bound), "last")
    program.collect(meter, into=last)
    program.fold_dynamic(program.fold(last, folds.mean(), "here"), "everywhere")
    plan = program.plan()
    lake, fold = LakeUnderTest(spark, plan, tmp_path), plan.local_folds["here"].fold
    before, after = Bound(0, 0, 5), Bound(3, 60 * SECOND_US, 2)
    partials = {"pi-0": (after, (2, 90)), "pi-1": (before, (5, 10)), "pi-2": (after, (1, 30))}

    def entry(device):
        columns = dict(zip(fold.columns_named, fold.under(*partials[device]), strict=True))
        stream = plan.local_folds["here"].stream
        return row("variable", device, 1, 7, 1, stream=stream, key="", **columns)

    lake.step([entry("pi-1")])
    value = lake.globals()["everywhere", ""]
    assert (value.partial, value.devices_in) == ((0, 0, 5, 1, 5, 10), 1)
    lake.step(list(map(entry, partials)))
    value = lake.globals()["everywhere", ""]
    assert (value.partial, value.devices_in) == ((*after, 2, 3, 120), 2)
    (described,) = descriptions(plan)
    meaning = definition_of(*described)
    assert meaning.fold.lower(value.partial, meaning.resolution) == {"mean": 4.0}


def test_workers_that_cannot_load_the_fold_are_named_at_the_start(spark, monkeypatch):
    own_combine.check(spark, mixed())
    lost = type("Lost", (Parity,), {"__module__": "not_there", "name": "lost"})
    only_here = ModuleType("not_there")
    only_here.Lost = lost
    monkeypatch.setitem(sys.modules, "not_there", only_here)
    program = Program("elsewhere")
    meter = program.event("meter")
    made = lost()
    program.window("w", source=meter, fold=made, size_s=10)
    with pytest.raises(UsageError, match="machines cannot import not_there"):
        own_combine.check(spark, program.plan())


def test_the_plan_says_how_spark_combines():
    parities, sums, here, now, *_ = identities(mixed())
    assert "on device and cloud (python, Arrow batches), " in parities
    assert "on device and cloud (spark operators), " in sums
    assert "on device, " in here
    assert "(python, Arrow batches)" in now


def test_its_columns_ops_are_no_law_for_it():
    found = {verdict.law: verdict for verdict in verdicts(Parity(), examples=20)}
    assert found[combine_follows_the_columns].skipped
    assert not any(verdict.broken for verdict in found.values())


def test_it_cannot_be_a_part_of_a_struct():
    with pytest.raises(ValueError, match="combines by itself; use it alone"):
        folds.struct(parity=Parity())
