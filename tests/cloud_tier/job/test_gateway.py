"""A gateway's table and Spark's are one table: every revision of every window, row by row."""

from decimal import Decimal

import pytest

from cloud_tier.job.maintenance import compact
from cloud_tier.lake.coverage import liveness_of
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, folds
from lasp_edge.protocol.window_rows import COUNTED, FleetRow, WindowStart
from simulations.oracle import Reading
from tests.cloud_tier.lakes import LakeUnderTest, batches
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    Device,
    history,
    readings_of,
    rooms_program,
    row,
    tick,
)
from tests.device_agent.gateway.support_gateway import GatewayUnderTest
from tests.lasp_edge.support_folds import ONE_EACH

pytestmark = pytest.mark.spark

MINUTE_US = 60 * SECOND_US
ROSTER = ["pi-0", "pi-1", "pi-2"]


def every_fold():
    """Return `rooms` with a further window, of every built-in fold by room."""
    program = rooms_program()
    (temperature,) = program.plan().events.values()
    every = folds.struct(**{f"its_{name}": fold for name, fold in ONE_EACH.items()})
    room = {"key": lambda event: event.tags["room"]}
    program.window("every", source=temperature, fold=every, size_s=50, slide_s=20, **room)
    return program.plan()


def lake_rows(lake):
    """Return all rows of a lake's windows as a gateway has them."""
    found = []
    for each in lake.rows(lake.lake.windows):
        columns = lake.program.windows[each["window"]].fold.columns_named
        partial = tuple(int(v) if isinstance(v, Decimal) else v for v in map(each.get, columns))
        at = WindowStart(each["window"], each["key"], each["start_us"])
        found.append(FleetRow.stored(at, each["end_us"], partial, each))
    return sorted(map(tuple, found), key=lambda made: (made[0], made[-3]))


def check_counted(lake):
    """Check that a lake counts the devices that it names, as a gateway's rows are shown."""
    for each in lake.rows(lake.lake.windows):
        made = FleetRow.stored(WindowStart(each["window"], "", 0), 0, (), each)
        assert [each[name] for name in COUNTED] == [made.record()[name] for name in COUNTED]


def gateway_rows(gateway):
    return sorted([tuple(row) for row in gateway.rows], key=lambda row: (row[0], row[-3]))


def test_each_revision_of_each_window_is_equal_row_by_row(spark, tmp_path):
    """Shuffled, repeated batches; a device that is not waited for comes back, and revises."""
    seed, plan = 5, every_fold()
    rows = history(plan, readings_of(seed, each=8), seed)
    lake = LakeUnderTest(spark, plan, tmp_path, dead_after_us=MINUTE_US, roster=ROSTER)
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(ROSTER, MINUTE_US))
    for number, batch in enumerate(batches(rows, seed, count=3)):
        at_us = BEGIN_US + number * 45 * SECOND_US
        promises = [tick(number + 1, at_us)]
        for name in ROSTER[: 3 - number]:  # the last of them falls silent, and then one more
            low = {"low_us": at_us + 50 * SECOND_US, "done": False, "received_us": at_us}
            promises.append(row("promise", name, 9, 1, number + 1, **low))
        lake.step([*batch, *promises])
        gateway.step([*batch, *promises])
        gateway.restart()
    assert gateway_rows(gateway) == lake_rows(lake), f"replay with seed={seed}"
    check_counted(lake)
    statuses = {row.status for row in gateway.rows}
    assert statuses == {"tentative", "final", "revised"}
    assert {row.excluded for row in gateway.rows} == {(), ("pi-2",)}


def test_a_device_that_is_back_is_named_no_more_from_the_promise_on_that_says_so(spark, tmp_path):
    """In windows that it has nothing of; also where the process before died with that promise."""
    plan = waiting_program()
    lake = LakeUnderTest(spark, plan, tmp_path, dead_after_us=MINUTE_US, roster=ROSTER)
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(ROSTER, MINUTE_US))
    device, away = Sensor(plan, "pi-0"), Sensor(plan, "pi-1")
    late_us = BEGIN_US + 5 * MINUTE_US
    for seconds in range(0, 60, 10):
        device.measure(20, BEGIN_US + seconds * SECOND_US)
    steps = [
        [away.promise(BEGIN_US + 20 * SECOND_US, BEGIN_US), tick(1, BEGIN_US)],
        [*device.send(late_us, 0), tick(2, late_us)],
        [away.promise(BEGIN_US + 40 * SECOND_US, late_us), tick(3, late_us)],
        [away.promise(BEGIN_US + 50 * SECOND_US, late_us), tick(4, late_us)],
    ]
    for number, rows in enumerate(steps):
        lake.step(rows)
        gateway.step(rows)
        assert gateway_rows(gateway) == lake_rows(lake), f"after step {number}"
        if number == 2:
            lake.restart()
            gateway.restart()
    newest = {row.at: row for row in gateway.rows}
    named = {
        (at.start_us - BEGIN_US) // SECOND_US: (row.status, row.excluded)
        for at, row in newest.items()
        if at.window == "soon"
    }
    silent = ("pi-2",)  # which never came
    assert named == {
        **dict.fromkeys((0, 10), ("final", silent)),
        **dict.fromkeys((20, 30, 40), ("revised", silent)),
        50: ("final", ("pi-1", "pi-2")),
    }
    assert {row["window"] for row in lake.rows(lake.lake.windows)} == {"usual", "soon", "sure"}


def test_rows_go_on_to_name_a_silent_device_that_is_waited_for_anew(spark, tmp_path):
    """After a restart a late reading revises some, and again when it is back with a part."""
    plan = waiting_program()
    lake = LakeUnderTest(spark, plan, tmp_path, dead_after_us=MINUTE_US, roster=ROSTER[:2])
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(ROSTER[:2], MINUTE_US))
    device, away = Sensor(plan, "pi-0"), Sensor(plan, "pi-1")
    late_us = BEGIN_US + 5 * MINUTE_US
    for seconds in range(0, 60, 10):
        device.measure(20, BEGIN_US + seconds * SECOND_US)
    steps = [[away.promise(BEGIN_US + 20 * SECOND_US, BEGIN_US), tick(1, BEGIN_US)]]
    steps.append([*device.send(late_us, 0), tick(2, late_us)])
    for seconds in (15, 35):
        device.measure(30, BEGIN_US + seconds * SECOND_US)
    steps.append([*device.send(late_us, 0), tick(3, late_us, since_us=late_us)])
    device.measure(30, BEGIN_US + 45 * SECOND_US)
    steps.append([away.promise(BEGIN_US + 40 * SECOND_US, late_us), *device.send(late_us, 0)])
    for number, rows in enumerate(steps):
        if number <= 2:
            lake.restart()
            gateway.restart()
        outcome = lake.step(rows)
        gateway.step(rows)
        assert gateway_rows(gateway) == lake_rows(lake), f"after step {number}"
        assert outcome.coverage.excluded == (("pi-1",) if number == 1 else ())
    revised = [
        ((row.end_us - BEGIN_US) // SECOND_US, row.excluded)
        for row in gateway.rows
        if row.status == "revised" and row.at.window == "soon"
    ]
    # It comes back, has sent all up to 40 s, and not all behind.
    assert revised == [(20, ()), (40, ("pi-1",)), (30, ()), (40, ()), (50, ("pi-1",))]


def test_who_promised_less_before_a_restart_has_sent_all_up_to_where_it_had_promised(
    spark, tmp_path
):
    """So no row names it there, also where the job dies once the promise is in `lattice`."""
    plan, roster = waiting_program(), ROSTER[:2]
    lake = LakeUnderTest(spark, plan, tmp_path, dead_after_us=MINUTE_US, roster=roster)
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(roster, MINUTE_US))
    device, other = Sensor(plan, "pi-0"), Sensor(plan, "pi-1")
    late_us = BEGIN_US + MINUTE_US // 2
    steps = [[*device.send(BEGIN_US, -60 * SECOND_US), *other.send(BEGIN_US, -60 * SECOND_US)]]
    steps.append([device.promise(None, late_us), *other.send(late_us, -60 * SECOND_US)])
    other.measure(20, BEGIN_US + 5 * SECOND_US)
    steps.append([*other.send(late_us, -60 * SECOND_US)])
    for number, rows in enumerate(steps):
        for each in (lake, gateway):
            each.step([*rows, tick(number + 1, BEGIN_US + number * 15 * SECOND_US)])
        if number:
            compact(spark, lake.job, ["1970-01-01"])
            lake.restart()
            gateway.restart()
    assert gateway_rows(gateway) == lake_rows(lake)
    assert {(row.status, row.excluded) for row in gateway.rows} == {("final", ())}


def waiting_program():
    """Return a program with windows that wait as long as the sink says, not at all, and for all."""
    program = Program("waits")
    reading = program.event("temperature", resolution="0.01")
    sizes = {"source": reading, "fold": folds.sum(), "size_s": 10}
    program.window("usual", **sizes)
    program.window("soon", tentative_after_s=0, **sizes)
    program.window("sure", tentative_after_s="never", **sizes)
    return program.plan()


class Sensor(Device):
    """A device of a program without variables, which may be cut off."""

    def __init__(self, plan, name):
        super().__init__(plan, name)
        self.unsent = []

    def measure(self, value, time_us):
        """Change its panes; they are sent with the next promise."""
        at = Reading(self.name, "temperature", value, time_us)
        windows = self.program.windows.values()
        self.unsent += [self._pane(place) for place in [self._add(each, at) for each in windows]]

    def send(self, now_us, behind_us):
        """Return all that it has not sent, and its promise."""
        rows, self.unsent = self.unsent, []
        return [*rows, self.promise(now_us - behind_us, now_us)]


def steps_with_a_retired_device(plan):
    """Return the rows of four steps: pi-1 is retired at 90 s, and has come to 40 s here."""
    device, slow = Sensor(plan, "pi-0"), Sensor(plan, "pi-1")
    time_us = [BEGIN_US + seconds * SECOND_US for seconds in range(0, 140, 10)]
    for each_us in time_us[:12]:
        device.measure(20, each_us)
    for each_us in time_us[:4]:
        slow.measure(21, each_us)
    at, retired = (slow.incarnation, slow.nonce, 10_000), {"control": 1, "retired": True}
    first, again = (
        row("member", "pi-1", *at, **retired, low_us=each_us) for each_us in (time_us[9], 0)
    )
    return [
        [*slow.send(time_us[4], 0), *device.send(time_us[4], 0), tick(1, time_us[4])],
        [first, tick(2, time_us[9])],
        [device.promise(time_us[12], time_us[12]), again, tick(3, time_us[12])],
        [slow.promise(time_us[9], time_us[13]), tick(4, time_us[13])],
    ]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_retired_device_is_named_until_it_has_sent_what_it_owes(spark, tmp_path, is_restarted):
    """It had promised as far as that to another sink; a second lander writes the decision, too."""
    plan, roster = waiting_program(), ["pi-0", "pi-1"]
    lake = LakeUnderTest(spark, plan, tmp_path, roster=roster)
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(roster))
    names = []
    for number, rows in enumerate(steps_with_a_retired_device(plan), 1):
        lake.step(rows)
        gateway.acceptance.membership |= liveness_of(rows).membership
        gateway.step(rows)
        assert gateway_rows(gateway) == lake_rows(lake), f"after step {number}"
        newest = {each.at: each for each in gateway.rows if each.at.window == "sure"}
        names.append({(at.start_us - BEGIN_US) // SECOND_US: newest[at].excluded for at in newest})
        if is_restarted and number == 2:
            compact(spark, lake.job, ["1970-01-01"])
            lake.restart()
            gateway.restart()
    nobody, late = dict.fromkeys(range(0, 40, 10), ()), ("pi-1",)
    assert names[0] == names[1] == nobody
    assert names[2] == nobody | dict.fromkeys(range(40, 90, 10), late) | {90: (), 100: (), 110: ()}
    assert names[3] == dict.fromkeys(range(0, 120, 10), ())


def steps_with_a_window_that_lacks_readings(plan):
    """Return the rows of four steps: in two of them pi-1 has all in `soon` from 60 s on alone."""
    device, changed = Sensor(plan, "pi-0"), Sensor(plan, "pi-1")
    time_us = [BEGIN_US + seconds * SECOND_US for seconds in range(0, 140, 10)]
    for each_us in time_us[:12]:
        device.measure(20, each_us)
    lacks = {"stream": plan.windows["soon"].stream, "since_us": time_us[6]}
    steps = []
    for number, (at, is_lacking) in enumerate([(3, False), (4, True), (9, True), (12, False)], 1):
        changed.incarnation += number == 2  # it is started with another program
        promise = changed.promise(time_us[at], time_us[at])
        version = (promise["incarnation"], promise["nonce"], promise["seq"])
        begun = [row("begun", "pi-1", *version, **lacks)] if is_lacking else []
        steps.append([*begun, *device.send(time_us[at], 0), promise, tick(number, time_us[at])])
    return steps


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_device_whose_window_lacks_readings_is_named_until_it_has_made_them(
    spark, tmp_path, is_restarted
):
    """It ran another program for a while."""
    plan, roster = waiting_program(), ["pi-0", "pi-1"]
    lake = LakeUnderTest(spark, plan, tmp_path, roster=roster)
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(roster))
    names = []
    for number, rows in enumerate(steps_with_a_window_that_lacks_readings(plan), 1):
        lake.step(rows)
        gateway.step(rows)
        assert gateway_rows(gateway) == lake_rows(lake), f"after step {number}"
        newest = {each.at: each.excluded for each in gateway.rows}
        assert {named for at, named in newest.items() if at.window != "soon"} == {()}
        named = {at.start_us - BEGIN_US for at in newest if newest[at]}
        names.append(sorted(us // SECOND_US for us in named))
        if is_restarted:
            compact(spark, lake.job, ["1970-01-01"])
            lake.restart()
            gateway.restart()
    assert names == [[], [30], [30, 40, 50], []]


def test_windows_wait_alike_over_restarts_and_compactions(spark, tmp_path):
    """Steps of 5 s; pi-2 is cut off in some of them, and sends it all later."""
    plan, roster = waiting_program(), tuple(ROSTER)
    terms = {"dead_after_us": 60 * MINUTE_US, "tentative_after_us": 8 * SECOND_US}
    lake = LakeUnderTest(spark, plan, tmp_path, roster=roster, **terms)
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(roster, **terms))
    devices = [Sensor(plan, name) for name in roster]
    for step in range(8):
        now_us = BEGIN_US + step * 5 * SECOND_US
        rows = [tick(step + 1, now_us)]
        for number, device in enumerate(devices):
            device.measure(20 + step, now_us - SECOND_US)
            if device.name != "pi-2" or not 2 <= step <= 6:
                rows += device.send(now_us, number * SECOND_US)
        lake.step(rows)
        gateway.step(rows)
        assert gateway_rows(gateway) == lake_rows(lake), f"after step {step}"
        if step == 3:
            compact(spark, lake.job, ["1970-01-01"])
        if step in {3, 5}:
            lake.restart()
            gateway.restart()
    check_who_waited(gateway.rows)


def check_who_waited(rows):
    usual = [row for row in rows if row.at.window == "usual"]
    tentative = [row for row in usual if row.status == "tentative"]
    waited = {BEGIN_US + seconds * SECOND_US for seconds in (10, 20)}
    assert {row.end_us for row in tentative} == waited, "the ones that waited for 8 s"
    assert {row.excluded for row in tentative} == {("pi-2",)}
    assert {row.status for row in rows if row.at.window == "sure"} == {"final"}
    soon = [row for row in rows if row.at.window == "soon" and row.revision == 0]
    assert {row.status for row in soon} == {"tentative"}
    assert "revised" not in {row.status for row in rows}
