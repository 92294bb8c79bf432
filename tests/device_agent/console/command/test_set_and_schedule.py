"""`lasp-edge set` and `schedule`: what they say to a fleet of real cores, and to people."""

import json

import pytest

from crdts import ControlLog
from device_agent.console.command import schedule
from device_agent.console.command import set as set_command
from lasp_edge.errors import CommandError, Exit, NotFound, UsageError
from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US as S
from tests.device_agent.agents import DAY_US, HOUR_US, NOW_US
from tests.device_agent.console.command.support_parameters import Fleet, ran

WEEK_US = 7 * DAY_US


@pytest.fixture
def fleet(tmp_path):
    return Fleet(tmp_path, "attic", "cellar")


@pytest.fixture
def say(fleet, monkeypatch):
    def run(*words, ahead_us=0):
        return ran(monkeypatch, fleet, set_command, *words, "--author", "ann", ahead_us=ahead_us)

    return run


@pytest.fixture
def schedule_of(fleet, monkeypatch):
    return lambda *words: ran(monkeypatch, fleet, schedule, *words)


def at(time_us):
    """Return a time as it is typed."""
    return shown_time(time_us).replace(" ", "T") + "Z"


def known(fleet, name):
    return fleet.devices[name].core.commands.known.control


def panes_since(fleet, seconds):
    """Return how many panes of 20 s and of 10 s have begun since then."""
    ago_s = (fleet.now_us - NOW_US) // S + seconds
    return -(-ago_s // 20) + -(-ago_s // 10)


def read_for_an_hour(fleet, *names):
    """Let devices read every five minutes, for an hour."""
    for name in names:
        times = [NOW_US - HOUR_US + n * 300 * S for n in range(12)]
        fleet.devices[name].read([20.0] * 12, times, {"room": "hall"})
    fleet.run(2)


def test_an_early_entry_is_known_on_those_that_are_there(fleet, say, capsys):
    fleet.leave("attic")
    assert say("above=30", "--from", at(NOW_US + HOUR_US)) == Exit.FINE
    moment = shown_time(NOW_US + HOUR_US)
    assert capsys.readouterr().out.splitlines() == [
        f"above: -50 °C until {moment} UTC, then 30 °C",
        "Known on 1 of 2 devices; not yet: attic (away).",
    ]
    assert known(fleet, "attic") == ControlLog()
    fleet.connect("attic")
    assert list(known(fleet, "attic").value.values()) == ["30"]


def test_what_nobody_received_overrides_what_was_set_before(fleet, say, capsys):
    when = ("--from", at(NOW_US + HOUR_US))
    assert (say("above=30", *when), say("above=31", *when)) == (Exit.FINE, Exit.FINE)
    for name in ("attic", "cellar"):
        fleet.leave(name)
    fleet.retained.clear()
    fleet.now_us += 10 * S
    assert say("above=40", *when) == Exit.NOT_CONFIRMED
    assert "No device was heard: not confirmed: the broker keeps it" in capsys.readouterr().out
    fleet.connect("attic")
    assert list(known(fleet, "attic").value.values()) == ["40"]


def test_a_late_entry_says_what_is_made_anew(fleet, say, capsys):
    read_for_an_hour(fleet, "attic", "cellar")
    fleet.run(10)
    words = ("offset=3", "--device", "cellar", "--from", at(NOW_US - 600 * S))
    until = ("--until", at(NOW_US - 300 * S))
    assert say(*words, *until, "--json") == Exit.FINE
    told = json.loads(capsys.readouterr().out)
    # Panes of 20 s and of 10 s, from then on; windows of 40 s each 20 s, and of 20 s each 10 s.
    assert told["panes"] == {"cellar": panes_since(fleet, 600)}
    assert told["windows"] == {"sums": 16, "by_room": 31}
    assert (told["known"], told["not_known"], told["not_heard"]) == (["attic", "cellar"], [], [])
    assert (told["device"], told["value"], told["readings_only_since"]) == ("cellar", "3", {})


def test_what_is_made_anew_is_said_in_one_line(fleet, say, capsys):
    read_for_an_hour(fleet, "attic", "cellar")
    words = ("offset=3", "--from", at(NOW_US - 600 * S), "--until", at(NOW_US - 300 * S))
    assert say(*words) == Exit.FINE
    panes = 2 * panes_since(fleet, 600)
    assert f"attic, cellar rebuild up to {panes} panes; up to 47 windows will be revised.\n" in (
        capsys.readouterr().out
    )


def test_a_time_of_which_a_device_has_no_readings_any_more_is_refused(fleet, say):
    read_for_an_hour(fleet, "attic")
    floor_us = NOW_US - 300 * S - WEEK_US
    with pytest.raises(CommandError) as refused:
        say("offset=3", "--from", at(floor_us - S))
    text = str(refused.value)
    assert text.startswith(
        f"attic has all readings only since {shown_time(floor_us)} UTC, and "
        f"{shown_time(floor_us - S)} UTC is before that; type --from "
    )
    assert "\n" not in text
    assert known(fleet, "attic") == ControlLog()
    with pytest.raises(CommandError, match=r"UTC is less than an hour after that; type --from "):
        say("offset=3", "--from", at(floor_us + HOUR_US - 60 * S))
    typed = text.partition("type --from ")[2].split()[0]
    assert say("offset=3", "--from", typed) == Exit.FINE


def test_a_device_whose_card_was_replaced_just_now_holds_up_no_value_from_now_on(
    fleet, say, monkeypatch
):
    """Of before it may lack readings that the former card had."""
    read_for_an_hour(fleet, "attic")
    floor_us = NOW_US - 60 * S
    highs = fleet.devices["attic"].core.intake.highs
    monkeypatch.setattr(type(highs), "furthest_doubt_us", lambda _: floor_us - 1)
    assert say("offset=3") == Exit.FINE
    with pytest.raises(CommandError, match=r"^attic has all readings only since"):
        say("offset=4", "--from", at(NOW_US - 30 * S), "--device", "attic")
    assert say("offset=4", "--from", at(fleet.now_us + 60 * S)) == Exit.FINE


@pytest.mark.parametrize(("hours", "way"), [(1, "ahead of"), (-3, "behind")])
def test_from_now_on_is_refused_where_the_fleet_has_another_time(fleet, say, hours, way):
    with pytest.raises(CommandError) as refused:
        say("offset=3", ahead_us=hours * HOUR_US)
    assert str(refused.value) == (
        f"THIS MACHINE'S CLOCK is {abs(hours)}.0 hours {way} those of 2 of 2 devices: type "
        "timedatectl here; or say from when it holds: --from TIME"
    )
    assert known(fleet, "attic") == ControlLog()


def test_what_is_rebuilt_is_counted_by_the_clock_of_the_fleet(fleet, say, capsys):
    read_for_an_hour(fleet, "attic")
    words = ("--from", at(NOW_US - 600 * S), "--json")
    seen = []
    for value, ahead_us in ((3, 0), (4, 3 * 365 * DAY_US)):
        assert say(f"offset={value}", *words, ahead_us=ahead_us) == Exit.FINE
        told = json.loads(capsys.readouterr().out)
        assert told["panes"]["attic"] == panes_since(fleet, 600)
        seen.append(told["windows"])
    assert max(seen[1][name] - seen[0][name] for name in seen[0]) <= 2  # time goes on
    with pytest.raises(CommandError, match=r"^attic has all readings only since"):
        # By a clock that is eight days behind, it is yet to come.
        say("offset=5", "--from", at(NOW_US - WEEK_US - HOUR_US), ahead_us=-8 * DAY_US)


def test_the_floor_of_the_device_that_is_named_decides(fleet, say):
    read_for_an_hour(fleet, "attic")
    early = at(NOW_US - WEEK_US - DAY_US)
    with pytest.raises(CommandError, match=r"^attic has all readings only since"):
        say("offset=3", "--device", "attic", "--from", early)
    # This one has read nothing yet, so nothing is missing.
    assert say("offset=3", "--device", "cellar", "--from", early) == Exit.FINE


def test_by_force_it_is_said_what_counts_no_more(fleet, say, capsys):
    read_for_an_hour(fleet, "attic")
    floor_us = NOW_US - 300 * S - WEEK_US
    early = at(NOW_US - WEEK_US - DAY_US)
    assert say("offset=3", "--from", early, "--force") == Exit.FINE
    out = capsys.readouterr().out
    since = shown_time(floor_us)
    assert f"attic: its readings before {since} UTC no longer count in these windows." in out
    assert "cellar: its readings" not in out


def test_who_was_not_heard_may_have_no_readings_any_more(fleet, say, capsys):
    fleet.leave("attic")
    assert say("offset=3", "--from", at(NOW_US - 60 * S)) == Exit.FINE
    assert "No beat arrived, so since when they keep readings is not known: attic." in (
        capsys.readouterr().out
    )


def test_what_is_so_already_is_not_said_again(fleet, say, capsys):
    words = ("offset=3.0", "--from", at(NOW_US - 60 * S))
    assert say(*words) == Exit.FINE
    before = known(fleet, "cellar").copy()
    capsys.readouterr()
    assert say("offset=3", *words[1:]) == Exit.FINE
    assert capsys.readouterr().out == (
        f"offset: 3 from {shown_time(NOW_US - 60 * S)} UTC on already; nothing was changed\n"
    )
    assert known(fleet, "cellar") == before


def test_a_place_is_taken_back(fleet, say, schedule_of, capsys):
    place = at(NOW_US + HOUR_US)
    assert say("above=30", "--from", place) == Exit.FINE
    assert say("above=default", "--from", place) == Exit.FINE
    assert known(fleet, "attic").value == {}
    capsys.readouterr()
    assert say("above=default", "--from", place) == Exit.FINE
    moment = shown_time(NOW_US + HOUR_US)
    assert capsys.readouterr().out == (
        f"above: there is no entry from {moment} UTC on; nothing was changed\n"
    )
    assert schedule_of() == Exit.FINE
    assert f"above: -50 °C\n  {moment} UTC: taken back (ann)\n" in capsys.readouterr().out


def test_a_broker_that_lost_what_it_retained_hears_it_from_the_devices(fleet, say):
    assert say("above=30", "--from", at(NOW_US + HOUR_US)) == Exit.FINE
    fleet.retained = {
        topic: what for topic, what in fleet.retained.items() if "ontrol" not in topic
    }
    assert say("above=31", "--from", at(NOW_US + 2 * HOUR_US)) == Exit.FINE
    assert list(known(fleet, "cellar").value.values()) == ["30", "31"]


def test_the_schedule_says_who_said_what_and_who_knows_it(fleet, say, schedule_of, capsys):
    say("offset=1", "--device", "cellar", "--from", at(NOW_US + 60 * S))
    fleet.leave("attic")
    say("above=30", "--from", at(NOW_US + HOUR_US))
    capsys.readouterr()
    assert schedule_of("--json") == Exit.FINE
    told = json.loads(capsys.readouterr().out)
    places = [tuple(place.values()) for place in told["places"]]
    numbers = [place["number"] for place in told["places"]]
    assert numbers[0] > numbers[1] >= NOW_US // S
    assert places == [
        ("above", None, shown_time(NOW_US + HOUR_US), "30", numbers[0], "ann"),
        ("offset", "cellar", shown_time(NOW_US + 60 * S), "1", numbers[1], "ann"),
    ]
    assert (told["known"], told["not_known"]) == (["cellar"], ["attic"])
    assert schedule_of() == Exit.FINE
    lines = capsys.readouterr().out.splitlines()
    assert f"  {shown_time(NOW_US + 60 * S)} UTC on cellar: 1 (ann)" in lines
    assert lines[-1] == "Known on 1 of 2 devices; not yet: attic (away)."


MISTAKES = {
    ("offst=3",): "the program 'greenhouse' has no parameter 'offst'; did you mean \"offset\"?",
    ("offset",): "a value is needed, as in offset=0",
    ("offset", "3"): "NAME=VALUE is needed, in one word: offset=3",
    ("offset", "=", "3"): "NAME=VALUE is needed, in one word: offset=3",
    ("offset=0.05",): "parameter 'offset': a number in steps of 0.1 is needed, not '0.05'",
    ("mode=dusk",): "parameter 'mode': one of day, night is needed, not 'dusk'",
    ("step_s=50",): (
        "window 'sums': a slide from size / 10000 to the size (40 s) is needed, not 50 s; "
        "nothing was changed"
    ),
    ("span_s=60", "--device", "cellar"): (
        "span_s is one for the whole fleet, as a size, slide, fold, bound or level of an alert on "
        "a window is; leave out --device"
    ),
    ("offset=3", "--from", "tomorrow"): (
        "--from: a time such as 2026-11-23T06:00Z is needed, not 'tomorrow'"
    ),
    ("offset=3", "--from", "2026-11-23 06:00"): (
        "--from: a time with its zone is needed; type 2026-11-23T06:00:00Z for UTC, or "
        "2026-11-23T06:00:00+01:00 for an hour east of it"
    ),
    ("offset=3", "--from", "99999999999999999999"): (
        "--from: a time from 1900 to 9999 is needed, not '99999999999999999999'"
    ),
    ("offset=3", "--from", "2026-11-23T06:00Z", "--until", "2026-11-23T05:00Z"): (
        "--until: a time after 2026-11-23 06:00:00 UTC is needed, not 2026-11-23T05:00Z"
    ),
    ("offset=default",): (
        "offset=default removes the entry of one time: add --from and that time, which "
        "`lasp-edge schedule` prints"
    ),
    ("offset=default", "--from", "2026-11-23T06:00Z", "--until", "2026-11-23T07:00Z"): (
        "--until: a value is needed that holds until then, not default"
    ),
}


@pytest.mark.parametrize("words", MISTAKES, ids=" ".join)
def test_a_mistake_is_one_line_that_says_what_is_needed(fleet, say, words):
    with pytest.raises(UsageError) as refused:
        say(*words)
    assert str(refused.value) == MISTAKES[words]
    assert known(fleet, "attic") == ControlLog()


def test_a_device_that_nobody_has_heard_of_is_named_by_force_only(fleet, say):
    words = ("offset=3", "--device", "celler")
    with pytest.raises(NotFound) as refused:
        say(*words)
    assert str(refused.value) == (
        "'celler' sent nothing in this fleet; add --force to set it all the same; "
        'did you mean "cellar"?'
    )
    assert say(*words, "--force") == Exit.FINE
    assert [place.scope for place in known(fleet, "attic").value] == ["celler"]
