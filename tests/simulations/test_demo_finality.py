"""The demo's checks of what was shown before it was final, and of what an operator changed."""

import pytest

from simulations.demo.evidence import Evidence
from simulations.demo.finality import settings_finding, waiting_finding
from simulations.demo.program import program
from simulations.demo.settings import Setting

S = 1_000_000
AWAY = {"attic": 1.5, "kitchen": 7.0, "garage": 26.0}
EARLY = Setting("warm_above", "25", 60 * S)
LATE = Setting("offset", "-0.30", 10 * S, 30 * S, "cellar", is_late=True)


def row(start_s: int, *revisions: tuple[str, str]) -> list[dict]:
    """Return the revisions of a window of 10 s: their status and who was missing."""
    times = {"key": "", "start_us": start_s * S, "end_us": (start_s + 10) * S}
    return [
        times | {"status": status, "excluded": excluded, "revision": number}
        for number, (status, excluded) in enumerate(revisions)
    ]


def seen(*windows: list[dict], name: str = "house") -> Evidence:
    all_rows = {name: [each for rows in windows for each in rows]}
    settings = (EARLY, LATE)
    evidence = Evidence(program.plan(), {}, {}, all_rows, None, 70.0, settings=settings, wait_s=15)
    return evidence._replace(away_s=AWAY, complete_us=15 * S)


FINAL = row(0, ("final", ""))
WAITED = row(20, ("tentative", "garage"), ("tentative", "garage"), ("final", ""))
REVISED = row(20, ("final", ""), ("revised", ""))


def test_who_was_away_for_longer_than_x_is_waited_for_and_the_windows_are_final_once():
    found = waiting_finding(seen(FINAL, WAITED), 15.0)
    assert found.ok
    assert found.text == (
        "windows wait 15 s for a device; garage was away for 26 s: 1 window shown as tentative. "
        "Each became final once"
    )
    assert "; none was shown as tentative." in waiting_finding(seen(FINAL), 15.0).text


def test_windows_may_wait_for_a_device_that_makes_its_panes_anew():
    late = row(20, ("tentative", "cellar"), ("final", ""))
    assert waiting_finding(seen(FINAL, late), 15.0).ok
    nothing_late = seen(FINAL, late)._replace(settings=(EARLY,))
    assert waiting_finding(nothing_late, 15.0).ok is False


def test_windows_may_wait_for_devices_that_are_still_starting():
    before, after = (row(at_s, ("tentative", "attic"), ("final", "")) for at_s in (5, 6))
    assert waiting_finding(seen(before), 15.0).ok
    assert waiting_finding(seen(after), 15.0).ok is False


def test_a_gateway_that_was_away_has_missed_every_device():
    of_all = seen(row(20, ("tentative", "attic,garage"), ("final", "")))
    assert waiting_finding(of_all, 15.0).ok is False
    assert waiting_finding(of_all._replace(merger_away_s=3.0), 15.0).ok is False
    assert waiting_finding(of_all._replace(merger_away_s=5.0), 15.0).ok


@pytest.mark.parametrize(
    ("windows", "text"),
    [
        (
            row(20, ("tentative", "garage,kitchen"), ("final", "")),
            "shown too early: kitchen was away for 7 s",
        ),
        (row(20, ("tentative", ""), ("final", "")), "shown too early: nobody"),
        (row(20, ("final", ""), ("final", "")), "became final twice: "),
        (row(20, ("tentative", "garage")), "not final: 1 window"),
    ],
)
def test_what_breaks_the_rule_of_x_is_found(windows, text):
    found = waiting_finding(seen(FINAL, windows), 15.0)
    assert found.ok is False
    assert text in found.text


def test_what_was_said_of_the_past_revised_its_windows_once_and_nothing_else_did():
    found = settings_finding(seen(FINAL, REVISED))
    assert found.ok
    assert found.text == (
        "warm_above, set for later, revised nothing; offset of cellar, set for the past, "
        "revised 1 window, each once"
    )
    assert settings_finding(seen(FINAL)).text.endswith("revised no window that was final")


@pytest.mark.parametrize(
    "evidence",
    [
        seen(row(20, ("final", ""), ("revised", ""), ("revised", ""))),
        seen(REVISED, row(30, ("final", ""), ("revised", ""))),
        seen(REVISED, row(0, ("final", ""), ("revised", ""))),
        seen(REVISED, name="cpu_by_device"),
    ],
    ids=["twice", "after it", "before it", "another window"],
)
def test_revisions_that_nobody_asked_for_are_found(evidence):
    assert settings_finding(evidence).ok is False
