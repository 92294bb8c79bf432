"""The line that an agent prints: what is so, what is wrong and why, and no more than a line."""

import pytest

from device_agent.agent.fleet.results import MOST_ALARMS, alarms
from device_agent.agent.intake.batch import Batch
from device_agent.agent.notices import CLONED
from device_agent.agent.settings import Settings
from device_agent.console.command.line import line_of, named, nothing_accepted, write_until_done
from device_agent.console.command.status import plainly, status_of
from lasp_edge import Program, folds, scans
from lasp_edge.link.trouble import CONNECTING
from lasp_edge.tool.screen import ago
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import greenhouse
from tests.device_agent.support_site import Site
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import EventWindow

OUTSIDE = {"trouble": None}
ENDS = "; it ends when all are taken; Ctrl-C ends it before, and its next start sends them\n"
SETTINGS = Settings(interval_us=SECOND_US)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path, greenhouse(), "attic", "shed", settings=SETTINGS)


@pytest.fixture
def pair(site):
    return [*site.devices.values()]


def said(device, **more):
    return line_of(device.core.report() | OUTSIDE | more)


def test_a_device_that_heard_nobody_is_alone_and_does_not_agree(pair):
    attic, _ = pair
    attic.read([20, 22])
    attic.tick(10)
    assert said(attic) == (
        "attic: 2 readings; local_average: mean 21; global_average: mean 21 over 1 device (alone);"
        " connected"
    )


def test_a_source_that_is_read_to_its_end_is_named_until_it_gives_more(pair):
    attic, _ = pair
    batch = Batch("csv:attic.csv", ["temperature"], [None], [20], [{}], done=True)
    attic.core.intake.sources.cursor("csv:attic.csv")
    attic.durable.read(batch, attic.now_us)
    attic.tick(10)
    assert "; csv:attic.csv: read to the end; connected" in said(attic)
    assert "source         csv:attic.csv: read to its end\n" in plainly(status_of(attic.store))
    attic.restart()
    attic.core.intake.sources.cursor("csv:attic.csv")  # it may have grown
    assert "read to the end" not in said(attic)


def test_devices_that_hold_the_same_agree(pair, site):
    attic, shed = pair
    attic.read([20])
    shed.read([22])
    site.run(6)
    for device in pair:
        assert "global_average: mean 21 over 2 devices (agreed); connected" in said(device)


def test_a_device_that_waits_for_the_others_says_since_when(pair, site):
    attic, shed = pair
    attic.read([20])
    shed.read([22])
    site.run(6)
    attic.core.report()
    attic.read([40])
    attic.tick(4)
    attic.core.report()
    attic.tick(4)
    assert "over 2 devices (last agreed 8 s ago); connected" in said(attic)


def test_a_value_that_never_comes_to_rest_is_said_to_change(pair, site):
    attic, shed = pair
    attic.read([20])
    shed.read([22])
    site.run(6)
    attic.core.report()
    for value in range(8):
        attic.read([value])
        attic.tick(1)
    assert "over 2 devices (still changing, last agreed 8 s ago); connected" in said(attic)


def test_what_was_never_agreed_on_is_not_agreed_yet(pair):
    attic, shed = pair
    shed.read([22])
    for each in shed.tick(10):
        attic.durable.hear(each.topic, each.payload, attic.now_us)
    attic.read([20])
    attic.tick(2)
    attic.core.report()
    attic.tick(4)
    assert "over 2 devices (not agreed yet)" in said(attic)


def test_without_a_connection_values_are_as_last_heard_and_the_reason_is_said(pair, site):
    attic, shed = pair
    attic.read([20])
    attic.tick(10)
    attic.core.handle_disconnected()
    trouble = "cannot reach mqtt://x: Connection refused"
    line = said(attic, trouble=trouble)
    assert line.startswith("attic: 1 reading; ")
    assert line.endswith(f"over 1 device; no connection ({trouble})")
    shed.read([22])
    attic.core.handle_connected(attic.now_us)
    site.run(6)
    attic.core.handle_disconnected()
    assert "over 2 devices (as last heard); no connection" in said(attic, trouble=trouble)


@pytest.mark.parametrize("trouble", [None, CONNECTING])
def test_an_agent_that_has_just_started_is_connecting(pair, trouble):
    attic, _ = pair
    attic.core.handle_disconnected()
    assert said(attic, trouble=trouble).endswith("over 0 devices; connecting")


def test_the_names_of_devices_that_are_away_are_cut(pair):
    attic, _ = pair
    report = attic.core.report() | OUTSIDE | {"others": 1}
    value = {"parts": {"mean": 1.0}, "settled": True, "devices": 12, "inputs": ""}
    value["except"] = [f"pi-{number}" for number in range(9)]
    line = line_of(report | {"values": {"fleet": value}})
    assert "(agreed, without pi-0, pi-1, pi-2 and 6 more)" in line
    assert len(line) < 160


def test_refusals_are_said_with_their_most_frequent_reason(pair):
    attic, _ = pair
    attic.core.counters.add("refused: no field 'tsx'", 3)
    assert "0 readings; 3 refused: no field 'tsx'; " in said(attic)
    attic.core.counters.add("refused: no time", 2)
    attic.core.counters.add("too_late")
    assert "; 6 refused: no field 'tsx' and 2 more reasons; " in said(attic)
    attic.core.handle_stop()
    attic.tick(20)
    attic.restart()
    assert "refused" not in said(attic)  # an earlier process had said it


def test_another_live_agent_of_this_name_is_said_with_what_to_do(pair):
    attic, _ = pair
    attic.core.agent.notices.alarm("clone", CLONED, now_us=attic.now_us, lasts_us=9)
    assert said(attic).endswith(
        "; ALARM: another live agent has this name: give one of the two another --device"
    )


def test_alarms_are_those_since_the_start_and_few():
    totals = {f"failed: fold {number}": 1 for number in range(20)}
    found = alarms(totals, {"failed: fold 0": 1})
    assert len(found) == MOST_ALARMS + 1
    assert found[-1] == "and 11 more"
    assert "failed: fold 0" not in found
    assert alarms(totals, totals) == []


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (86_400 * 3, "3 days")]
)
def test_times_are_short(seconds, text):
    assert ago(seconds) == text


def test_names_are_joined():
    assert [named(list("abcde"[:count])) for count in (0, 1, 3, 4)] == [
        "",
        "a",
        "a, b, c",
        "a, b, c and 1 more",
    ]


def test_why_an_agent_that_is_done_has_nothing(pair):
    attic, _ = pair
    assert nothing_accepted(attic.core.report()) == (
        "no reading was accepted: the sources gave none"
    )
    refused = Batch("s", [], [], [], [], refused={"not JSON": 3})
    attic.durable.read(refused, attic.now_us)
    attic.tick()
    assert nothing_accepted(attic.core.report()) == ("no reading was accepted: 3 refused: not JSON")
    attic.read([20])
    attic.tick()
    assert nothing_accepted(attic.core.report()) == ""


def test_an_agent_that_ends_when_all_is_landed_says_that_it_waits_for_a_lander(pair, capsys):
    attic, _ = pair
    report, plan = attic.core.report() | OUTSIDE | {"dirty": 7, "sinks": {}}, greenhouse()
    write_until_done(report, plan)
    said_so = "; 7 entries of windows wait for a lander or gateway, and neither was heard yet"
    out = capsys.readouterr().out
    assert said_so in out
    assert out.endswith(ENDS)
    write_until_done(report | {"dirty": 0}, plan)
    assert capsys.readouterr().out == f"{line_of(report)}\n"
    heard = {"sinks": {"lake": {"store": "5e1f", "waiting": 7}}}
    write_until_done(report | heard, plan)
    waits = "7 entries of windows wait for lake to answer"
    assert capsys.readouterr().out == f"{line_of(report)}; {waits}{ENDS}"


def test_an_agent_whose_readings_stay_on_it_says_that_it_does_not_end(pair, capsys):
    attic, _ = pair
    write_until_done(attic.core.report() | OUTSIDE, plan_of("a", EventWindow))
    assert "; --exit-when-done does not end it: gateways may ask" in capsys.readouterr().out


def test_an_agent_that_ends_when_all_is_landed_says_what_was_not_taken(pair, capsys):
    attic, _ = pair
    refused = {"store": "5e1f", "waiting": 7, "not_taken": {"no such window: use its program": 7}}
    report = attic.core.report() | OUTSIDE | {"dirty": 7, "sinks": {"lake": refused}}
    write_until_done(report, greenhouse())
    said = "7 entries of windows not taken by lake: no such window: use its program"
    assert capsys.readouterr().out == f"{line_of(report)}; {said}{ENDS}"


def pool(*, window=False, fleet=False):
    program = Program("pool")
    acid = program.event("acid", resolution="0.01")
    if window:
        program.window("w", source=acid, fold=folds.mean(), size_s=60)
    program.result(program.scan("steady", source=acid, scan=scans.changes(), per_device=True))
    if fleet:
        program.result(program.scan("all", source=acid, scan=scans.top(1)), parts={"most": "1"})
    return program.plan()


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (pool(), "results wait for a lander, and none was heard yet (lasp-edge lander --help)"),
        (pool(window=True), "windows and results wait for a lander or gateway, and neither was"),
        (pool(fleet=True), "results wait for a lander or gateway, and neither was heard yet"),
    ],
)
def test_an_agent_names_what_waits_and_who_can_take_it(pair, capsys, plan, words):
    attic, _ = pair
    write_until_done(attic.core.report() | OUTSIDE | {"dirty": 7, "sinks": {}}, plan)
    assert f"; 7 entries of {words}" in capsys.readouterr().out
