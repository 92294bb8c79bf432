"""One run of a gateway over its file: what it commits when, and what the next run goes on with."""

import pytest

from device_agent.gateway import run as run_module
from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.run import BEATS_WAIT, LAST_STARTS, GatewayRun, GatewaySettings
from device_agent.gateway.store import FleetStore
from lasp_edge import Program, folds
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from tests.lasp_edge.protocol.support_frames import BEGIN_US, ME, beat, panes

COMMIT_US = 2 * SECOND_US
WINDOW_US = 10 * SECOND_US


def house():
    """Return a program with two alerts on a window: one has to hold for long."""
    program = Program("house")
    warm = program.event("warm", resolution="1")
    window = program.window(
        "by_room", source=warm, fold=folds.mean(), size_s=10, key=lambda event: event.tags["room"]
    )
    program.alert("hot", window, above=5, for_s=40)
    program.alert("warm", window, above=5, below=2)
    return program.plan()


class Link:
    """A link that takes everything."""

    trouble = None

    def __init__(self):
        self.topics = []

    def publish(self, topic, _payload, *, retain=False):
        self.topics.append(topic)
        return True


class House:
    """A gateway that is run by hand, and the device of one room."""

    def __init__(self, directory):
        self.plan, self.topics = house(), Topics("house")
        self.now_us, self.directory, self.number = BEGIN_US, directory, 0
        self.store = self.run = None
        self.restart()

    def restart(self):
        self.close()
        self.store, self.link = FleetStore(self.directory), Link()
        terms = WaitingTerms(roster=[ME.device])
        settings = GatewaySettings(terms=terms, commit_us=COMMIT_US, results_us=SECOND_US)
        clock = ListeningClock(SECOND_US, lambda: self.now_us, lambda: self.now_us)
        given = (self.plan, self.store, settings, clock, 7, f"{self.number + 1:016x}")
        self.run = GatewayRun(*given, say=lambda _: None)
        self.run.connected()

    def close(self):
        if self.store is not None:
            self.store.close()

    def hear(self, *frames):
        for frame in frames:
            self.run.hear(topic_of(frame, self.topics), frame.encode())

    def pass_time(self, time_us):
        self.now_us += time_us
        self.run.turn(self.link)

    def panes(self, start_us, value):
        """Return a frame of the attic's pane that begins then."""
        self.number += 1
        given = {"columns": ((1,), (value,)), "keys": ("attic",), "panes_us": (start_us,)}
        return panes(self.plan, self.number, **given, seqs=(self.number,))

    def beat(self, low_us):
        self.number += 1
        name, store = self.run.acceptance.sink
        return beat(self.number, low_us, sink=name, store=store)

    def window(self, number, value):
        """Let a window be final with one reading."""
        start_us = BEGIN_US + number * WINDOW_US
        self.now_us = max(self.now_us, start_us + WINDOW_US)
        self.hear(self.panes(start_us, value))
        self.hear(self.beat(start_us + WINDOW_US))
        self.pass_time(COMMIT_US)
        return self.run.alerts.statuses["hot", "attic"]["state"]


@pytest.fixture
def site(tmp_path):
    made = House(tmp_path)
    yield made
    made.close()


def test_panes_wait_for_one_commit_and_beats_for_some_more(site):
    site.hear(site.beat(BEGIN_US))
    before = site.store.commits
    site.pass_time(COMMIT_US)
    assert site.store.commits == before
    site.pass_time((BEATS_WAIT - 1) * COMMIT_US)
    assert site.store.commits == before + 1
    site.hear(site.panes(BEGIN_US, 9))
    site.pass_time(COMMIT_US - 1)
    assert site.store.commits == before + 1
    site.pass_time(1)
    assert site.store.commits == before + 2


def test_messages_of_many_bytes_are_not_held_until_their_commit_is_due(site, monkeypatch):
    monkeypatch.setattr(run_module, "FULL_BYTES", 100)
    site.hear(site.panes(BEGIN_US, 9), site.panes(BEGIN_US + WINDOW_US, 9))
    before = site.store.commits
    site.pass_time(1)
    assert site.store.commits == before + 1


class Killed(BaseException):
    """The process ends here."""


def test_an_alert_knows_all_rows_that_are_stored_wherever_the_process_ends(site, monkeypatch):
    """It is judged by the last rows of each key after a start: those before are not all there."""
    assert site.window(0, 9) == "off"
    late = [site.panes(BEGIN_US + n * WINDOW_US, 1 if n == 1 else 9) for n in range(1, 6)]
    site.now_us += 6 * WINDOW_US
    site.hear(*late, site.beat(BEGIN_US + 6 * WINDOW_US))

    def dies(*_given):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(site.run.core.replies, "owe", dies)  # right after the commit
        patched.setattr(site.store, "put_facts", dies)
        with pytest.raises(Killed):
            site.pass_time(COMMIT_US)
    site.restart()
    assert site.run.alerts.statuses["hot", "attic"]["state"] == "off", "it holds for 30 s"
    assert site.window(6, 9) == "on", "it has held for 40 s"


def test_an_older_row_that_was_revised_turns_no_alert_after_a_restart_either(site):
    for number in range(2):
        site.window(number, 3)
    site.hear(site.panes(BEGIN_US, 9))  # no more than the newest row counts
    site.pass_time(COMMIT_US)
    assert site.run.alerts.statuses["warm", "attic"]["state"] == "off"
    site.restart()
    assert site.run.alerts.statuses["warm", "attic"]["state"] == "off"


def test_an_alert_of_a_gateway_that_restarts_goes_on_holding(site):
    assert {site.window(number, 9) for number in range(LAST_STARTS + 1)} == {"off"}
    site.restart()
    assert site.window(LAST_STARTS + 1, 9) == "on", "40 s since the end of the first window"
    site.restart()
    assert site.run.alerts.statuses["hot", "attic"]["state"] == "on"
    assert site.window(LAST_STARTS + 2, 1) == "off"
    site.restart()
    after = range(LAST_STARTS + 3, 2 * LAST_STARTS + 3)
    assert {site.window(number, 9) for number in after} == {"off"}, "it begins again"
