"""Programs that are changed, and changed back, over what one gateway keeps."""

import pytest

from crdts import BoundedLWWSet
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, folds
from lasp_edge.protocol.acceptance import Accepted
from lasp_edge.protocol.frames import EVERY_WINDOW
from lasp_edge.protocol.limits import LATEST_PANE_US
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, Device, rooms, tick
from tests.device_agent.gateway.support_gateway import GatewayUnderTest, accepted_of
from tests.device_agent.gateway.test_core import MINUTE_US, START_US, read

FOUR = [f"pi-{number}" for number in range(4)]
"""Devices of a roster."""


def sums_of(size_s, slide_s, fold=folds.sum):
    """Return a program whose window, and the fold of it, may be others in the next one."""
    program = Program("rooms")
    temperature = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(temperature, into=samples)
    program.fold_dynamic(program.fold(samples, folds.mean(), "local_average"), "global_average")
    window = {"fold": fold(), "size_s": size_s, "slide_s": slide_s}
    program.window("by_room", source=temperature, key=lambda e: e.tags["room"], **window)
    return program.plan()


def under(plan, gateway=None, tentative_after_us=0):
    """Return a gateway of a program, over what another one keeps."""
    terms = WaitingTerms(["pi-0"], tentative_after_us=tentative_after_us)
    return GatewayUnderTest(plan, None if gateway is None else gateway.keeper, terms)


def current_of(gateway):
    """Return (start, length) -> (partial, status) of the rows that readers of it are shown."""
    stream = gateway.plan.windows["by_room"].stream
    rows = [rows[-1] for rows in gateway.keeper.revisions.values() if rows[-1].devices_in]
    assert {row.stream for row in rows} == {stream}
    at = [((row.at.start_us - START_US) // SECOND_US, row.end_us - row.at.start_us) for row in rows]
    return {
        (start_s, size_us // SECOND_US): (row.partial, row.status)
        for (start_s, size_us), row in zip(at, rows, strict=True)
    }


@pytest.mark.parametrize("tentative_after_us", [0, MINUTE_US])
def test_no_row_of_another_length_stays_where_a_size_is_changed_and_changed_back(
    tentative_after_us,
):
    """The panes are those of one stream: their span is the slide."""
    long, short = sums_of(60, 20), sums_of(40, 20)
    device = Device(long, "pi-0")
    gateway = under(long, None, tentative_after_us)
    gateway.step([*read(device, 20.0, 1), *read(device, 3.0, 70), tick(1, BEGIN_US)])
    gateway.step([device.promise(START_US + 85 * SECOND_US, BEGIN_US)])
    before = current_of(gateway)
    assert before[20, 60] == ((300,), "final")
    gateway = under(short, gateway, tentative_after_us)
    gateway.step([tick(2, BEGIN_US)])
    found = current_of(gateway)
    assert {size for _, size in found} == {40}
    assert found[0, 40] == ((2_000,), "revised")
    assert found[40, 40] == ((300,), "final")
    gateway = under(long, gateway, tentative_after_us)
    gateway.step([tick(3, BEGIN_US)])
    found = current_of(gateway)
    assert {size for _, size in found} == {60}
    assert found[0, 60] == ((2_000,), "revised")
    for at_s in (20, 40):
        assert found[at_s, 60][0] == (300,)
    gateway.step([device.promise(START_US + MINUTE_US * 9, BEGIN_US)])
    assert {status for _, status in current_of(gateway).values()} <= {"final", "revised"}
    assert {size for _, size in current_of(gateway)} == {60}


def test_tentative_rows_of_a_program_that_is_run_again_become_final():
    first, other = sums_of(60, 20), sums_of(60, 20, folds.max)
    device = Device(first, "pi-0")
    gateway = under(first)
    gateway.step([*read(device, 20.0, 1), tick(1, BEGIN_US)])
    gateway = under(other, gateway)
    renewed = Device(other, "pi-0")
    gateway.step([*read(renewed, 19.0, 2), tick(2, BEGIN_US)])
    gateway.step([renewed.promise(START_US + MINUTE_US, BEGIN_US)])
    assert current_of(gateway)[0, 60] == ((1_900,), "final")
    gateway = under(first, gateway)
    gateway.step([tick(3, BEGIN_US)])
    assert current_of(gateway)[0, 60] == ((2_000,), "final")
    # Whoever asks for all revisions of a window finds each of them, of whatever program it is.
    for at, rows in gateway.keeper.revisions.items():
        assert [row.revision for row in rows] == list(range(len(rows))), at


def test_a_final_row_names_nobody_who_promised_past_it_while_another_program_left_it_out():
    plan, former = rooms(), Program("rooms")
    temperature = former.event("temperature", resolution="0.01", unit="°C")
    former.window("others", source=temperature, fold=folds.sum(), size_s=30)
    here, away = Device(plan, "pi-0"), Device(plan, "pi-1")
    later_us = BEGIN_US + 5 * MINUTE_US
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(["pi-0", "pi-1"], MINUTE_US))
    gateway.step([*read(here, 20.0, 1), tick(1, BEGIN_US)])
    gateway.step([here.promise(START_US + 2 * MINUTE_US, later_us), tick(2, later_us)])
    assert {row.excluded for row in gateway.rows if row.status == "final"} == {("pi-1",)}
    gateway = GatewayUnderTest(former.plan(), gateway.keeper, gateway.terms)
    gateway.step([away.promise(START_US + 2 * MINUTE_US, later_us), tick(3, later_us)])
    gateway = GatewayUnderTest(plan, gateway.keeper, gateway.terms)
    gateway.step([tick(4, later_us)])
    found = [rows[-1] for at, rows in gateway.keeper.revisions.items() if at[0] != "others"]
    assert {(row.status, row.excluded) for row in found} == {("revised", ())}


def test_a_final_row_names_who_lost_a_store_while_another_program_left_it_out():
    plan, former = rooms(), Program("rooms")
    temperature = former.event("temperature", resolution="0.01", unit="°C")
    former.window("others", source=temperature, fold=folds.sum(), size_s=30)
    here, away = Device(plan, "pi-0"), Device(plan, "pi-1")
    later_us, until_us = BEGIN_US + 5 * MINUTE_US, START_US + 2 * MINUTE_US
    gateway = GatewayUnderTest(plan, terms=WaitingTerms(["pi-0", "pi-1"], MINUTE_US))
    gateway.step([away.promise(START_US, later_us), here.promise(START_US, later_us)])
    away.incarnation += 1
    gateway.step([*read(here, 20.0, 1), here.promise(until_us, later_us), tick(1, later_us)])
    gateway.step([away.promise(until_us, later_us)])
    assert {row.excluded for row in gateway.rows if row.status == "final"} == {()}
    gateway = GatewayUnderTest(former.plan(), gateway.keeper, gateway.terms)
    gateway.step([{**away.promise(until_us, later_us), "since_us": START_US + 90 * SECOND_US}])
    gateway = GatewayUnderTest(plan, gateway.keeper, gateway.terms)
    gateway.step([tick(2, later_us)])
    found = [rows[-1] for at, rows in gateway.keeper.revisions.items() if at[0] != "others"]
    assert {(row.status, row.excluded) for row in found} == {("revised", ("pi-1",))}


def test_a_device_that_lacks_readings_is_named_in_the_rows_of_windows_that_begin_before():
    plan = sums_of(60, 20)
    window, device = plan.windows["by_room"], Device(plan, "pi-0")
    gateway = under(plan)
    begun = ((window.stream, START_US + 1),)
    promise = device.promise(START_US + 2 * MINUTE_US, BEGIN_US)
    rows = [*read(device, 20.0, 30), promise, tick(1, BEGIN_US)]
    accepted, listening = accepted_of(plan, rows)
    accepted.begun_before["pi-0"] = begun
    del accepted.begun["pi-0"]  # that of a beat does not count yet
    turn = gateway.core.join(accepted, listening)
    gateway.keeper.commit(turn.changes)
    named = {row.at.start_us - START_US: row.excluded for row in turn.changes.rows}
    assert named[0] == named[-20 * SECOND_US] == ("pi-0",)
    assert named[20 * SECOND_US] == ()
    gateway.restart()
    again = gateway.step(read(device, 21.0, 31)).changes.rows
    assert {row.excluded for row in again if row.at.start_us <= START_US} == {("pi-0",)}
    whole = accepted_of(plan, [device.promise(START_US + 3 * MINUTE_US, BEGIN_US)])[0]
    whole.begun["pi-0"] = ()  # it has made all of them since
    gateway.keeper.commit(gateway.core.join(whole, None).changes)
    rows = gateway.step(read(device, 22.0, 32)).changes.rows
    assert {row.excluded for row in rows} == {()}


def test_a_device_that_connects_again_takes_back_nothing_that_it_stated_of_its_readings():
    """Its program lacks another window, and its presence says so before its next beat."""
    plan = sums_of(60, 20)
    window, device = plan.windows["by_room"], Device(plan, "pi-0")
    gateway = under(plan)
    rows = [*read(device, 20.0, 30), device.promise(START_US + 2 * MINUTE_US, BEGIN_US)]
    accepted, listening = accepted_of(plan, [*rows, tick(1, BEGIN_US)])
    accepted.begun["pi-0"] = ((window.stream, START_US + 1),)
    gateway.keeper.commit(gateway.core.join(accepted, listening).changes)
    connects = Accepted(unsent={"pi-0": ((7, LATEST_PANE_US),)})
    gateway.keeper.commit(gateway.core.join(connects, listening).changes)
    found = gateway.step(read(device, 21.0, 31)).changes.rows
    named = {row.at.start_us - START_US: row.excluded for row in found}
    assert named[0] == named[-20 * SECOND_US] == ("pi-0",)
    assert named[20 * SECOND_US] == ()


def test_final_rows_name_a_device_no_more_once_it_has_made_the_panes_that_it_lacked():
    plan = sums_of(60, 20)
    window, device = plan.windows["by_room"], Device(plan, "pi-0")
    gateway = under(plan)
    rows = [*read(device, 20.0, 30), device.promise(START_US + 2 * MINUTE_US, BEGIN_US)]
    for begun in (((window.stream, LATEST_PANE_US),), ()):
        accepted, listening = accepted_of(plan, [*rows, tick(1, BEGIN_US)])
        accepted.begun["pi-0"] = begun
        gateway.keeper.commit(gateway.core.join(accepted, listening).changes)
        found = [rows[-1] for rows in gateway.keeper.revisions.values()]
        assert {row.excluded for row in found} == {("pi-0",) if begun else ()}
        rows = [device.promise(START_US + 2 * MINUTE_US, BEGIN_US)]
    assert {row.status for row in found} == {"revised"}


def test_a_lost_store_lacks_what_it_had_not_promised_to_this_gateway_or_ever_to_another():
    """A card is replaced after 70 s; its readings of up to 60 s are at the first gateway alone."""
    plan = rooms()
    terms = WaitingTerms(["pi-0"])
    first, other = (GatewayUnderTest(plan, terms=terms) for _ in range(2))
    device = Device(plan, "pi-0")
    before = [row for at_s in range(0, 60, 10) for row in read(device, 20.0, at_s)]
    first.step([*before, device.promise(START_US + MINUTE_US, BEGIN_US), tick(1, BEGIN_US)])
    device.start()
    rows = [row for at_s in range(70, 150, 10) for row in read(device, 20.0, at_s)]
    rows += [device.promise(START_US + 5 * MINUTE_US, BEGIN_US), tick(2, BEGIN_US)]
    rows += read(device, 21.0, 5)  # late, or what a recording still had
    for gateway in (first, other):
        accepted, listening = accepted_of(plan, rows)
        accepted.begun["pi-0"] = ((EVERY_WINDOW, START_US + 70 * SECOND_US),)
        gateway.keeper.commit(gateway.core.join(accepted, listening).changes)
        gateway.restart()
        gateway.step(read(device, 22.0, 200))
    for gateway, since_s in ((first, 60), (other, -1_000)):
        found = [rows[-1] for rows in gateway.keeper.revisions.values()]
        final = [row for row in found if row.status != "tentative"]
        for row in final:
            lacks = row.end_us > START_US + since_s * SECOND_US
            lacks &= row.at.start_us < START_US + 70 * SECOND_US
            assert row.excluded == (("pi-0",) if lacks else ()), row
        assert {row.excluded for row in final} == {(), ("pi-0",)}


@pytest.mark.parametrize("other", [False, True])
def test_a_row_that_was_final_names_a_device_once_it_states_that_another_store_had_more(other):
    """Its new life promises before it has heard what the lost one, or a later one, had accepted."""
    terms = WaitingTerms(["pi-0"])
    device, gateway = Device(rooms(), "pi-0"), GatewayUnderTest(rooms(), terms=terms)
    until_us = START_US
    for until_s in (70, 130) if other else (70,):
        before = [row for at_s in range(0, 60, 10) for row in read(device, 20.0, at_s)]
        gateway.step([*before, device.promise(START_US + MINUTE_US, BEGIN_US), tick(1, BEGIN_US)])
        device.start()
        later = [row for at_s in range(60, 150, 10) for row in read(device, 20.0, at_s)]
        gateway.step(
            [*later, device.promise(START_US + 5 * MINUTE_US, BEGIN_US), tick(2, BEGIN_US)]
        )
        gateway.restart()
        until_us = START_US + until_s * SECOND_US
        accepted = accepted_of(rooms(), [device.promise(START_US + 6 * MINUTE_US, BEGIN_US)])[0]
        accepted.begun["pi-0"] = ((EVERY_WINDOW, until_us),)
        gateway.keeper.commit(gateway.core.join(accepted, None).changes)
        device.start()
    final = [
        each[-1] for each in gateway.keeper.revisions.values() if each[-1].status != "tentative"
    ]
    named = {row.at.start_us for row in final if row.excluded == ("pi-0",)}
    since_us = START_US + MINUTE_US
    assert named == {
        row.at.start_us for row in final if row.end_us > since_us and row.at.start_us < until_us
    }
    assert named
    assert {row.status for row in final if row.excluded} == {"revised"}


def test_what_was_final_before_anybody_knew_of_a_device_does_not_name_it():
    """A gateway that was there for years would else write all its rows again."""
    plan = rooms()
    gateway = GatewayUnderTest(plan, terms=WaitingTerms())
    first, new = Device(plan, "pi-0"), Device(plan, "pi-9")
    rows = [row for at_s in range(0, 300, 10) for row in read(first, 20.0, at_s)]
    heard_us = BEGIN_US + 1_000 * SECOND_US
    gateway.step([*rows, first.promise(START_US + MINUTE_US, heard_us), tick(1, heard_us)])
    assert gateway.core.coverage.frontier == START_US + MINUTE_US
    gateway.step([new.promise(START_US + 5 * MINUTE_US, heard_us)])
    gateway.step([first.promise(START_US + 5 * MINUTE_US, heard_us)])
    gateway.restart()
    before = {at: len(rows) for at, rows in gateway.keeper.revisions.items()}
    accepted = accepted_of(plan, [new.promise(START_US + 6 * MINUTE_US, heard_us)])[0]
    accepted.begun["pi-9"] = ((EVERY_WINDOW, START_US + 2 * MINUTE_US),)
    gateway.keeper.commit(gateway.core.join(accepted, None).changes)
    revised = {at for at, rows in gateway.keeper.revisions.items() if len(rows) > before[at]}
    rows = {at: each[-1] for at, each in gateway.keeper.revisions.items()}
    assert revised
    assert revised == {
        at
        for at, row in rows.items()
        if row.end_us > START_US + MINUTE_US and at.start_us < START_US + 2 * MINUTE_US
    }
    assert {rows[at].excluded for at in revised} == {("pi-9",)}


def grown():
    """Return a program, a further one whose window is longer, and for each what a gateway takes.

    One device of four goes on, one was away and is back before the longer window is over, one falls
    silent within it, and one never came.
    """
    short, long = sums_of(40, 20), sums_of(60, 20)
    goes_on, back, falls_silent = (Device(short, name) for name in FOUR[:3])
    later_us, end_us = BEGIN_US + 5 * MINUTE_US, BEGIN_US + 10 * MINUTE_US
    before = [
        [
            back.promise(START_US + 20 * SECOND_US, BEGIN_US),
            *read(back, 20.0, 5),
            tick(1, BEGIN_US),
        ],
        [
            *read(goes_on, 3.0, 70),
            goes_on.promise(START_US + 85 * SECOND_US, later_us),
            falls_silent.promise(START_US + 90 * SECOND_US, later_us),
            tick(2, later_us),
        ],
    ]
    behind = [
        [tick(3, later_us)],
        read(goes_on, 4.0, 84),
        [
            back.promise(START_US + 200 * SECOND_US, end_us),
            goes_on.promise(START_US + 85 * SECOND_US, end_us),
            tick(4, end_us),
        ],
        [goes_on.promise(START_US + 120 * SECOND_US, end_us), tick(5, end_us)],
    ]
    return (short, before), (long, behind)


def test_a_final_row_of_a_window_that_is_longer_now_names_whom_it_was_made_without():
    """Up to F, while that has not passed the new end; and when it does, who is missing then."""
    gateway = None
    for plan, steps in grown():
        keeper = None if gateway is None else gateway.keeper
        gateway = GatewayUnderTest(plan, keeper, WaitingTerms(FOUR, MINUTE_US))
        for rows in steps:
            gateway.step(rows)
    found = gateway.keeper.revisions["by_room", "attic", START_US + 40 * SECOND_US]
    lengths = [((row.end_us - row.at.start_us) // SECOND_US, *row[5:7]) for row in found]
    _, back, silent, absent = FOUR
    assert lengths == [
        (40, (back, absent), "final"),
        *[(60, (back, absent), "revised")] * 2,
        (60, (silent, absent), "revised"),
    ]
