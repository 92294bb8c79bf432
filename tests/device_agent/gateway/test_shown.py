"""What a gateway's topics hold after a restart: nothing of a program that it runs no longer."""

import pytest

from device_agent.gateway.core import WaitingTerms
from device_agent.gateway.run import GatewayRun, GatewaySettings
from device_agent.gateway.store import FleetStore
from lasp_edge import Program, folds
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US
from tests.lasp_edge.protocol.support_frames import BEGIN_US, ME, beat, panes

TOPICS = Topics("house")
BY_ROOM = TOPICS.result("by_room", "gateway", "attic")
WHOLE = TOPICS.result("by_room", "gateway")
HOT = TOPICS.alert("hot", "gateway", "attic")
HOME = "homeassistant/device/lasp__house/gateway__gateway/config"


def house(*, fold=None, keyed=True, alert=True, named="by_room"):
    program = Program("house")
    warm = program.event("warm", resolution="1")
    key = (lambda event: event.tags["room"]) if keyed else None
    window = program.window(named, source=warm, fold=fold or folds.mean(), size_s=10, key=key)
    if alert:
        program.alert("hot", window, above=5)
    return program.plan()


class Broker:
    """What it retains; it takes messages while it is there."""

    trouble = None

    def __init__(self, store):
        self.retained, self.store, self.is_there = {}, store, True

    def publish(self, topic, payload, *, retain=False):
        if payload and retain and "/out/" in topic:
            facts = self.store.facts()
            stored = "".join(each for name, each in facts.items() if name.startswith("shown "))
            assert f'"{topic}"' in stored, "no topic is published before it is stored"
        if retain and self.is_there:
            self.retained[topic] = payload
        if not payload and self.is_there:
            del self.retained[topic]
        return True


class Gateway:
    """A gateway that is run by hand, at one broker."""

    def __init__(self, directory):
        self.directory, self.now_us, self.starts = directory, BEGIN_US, 0
        self.number = 0
        self.broker, self.store = Broker(None), None

    def start(self, plan, name="gateway", home=""):
        if self.store is not None:
            self.store.close()
        self.starts += 1
        self.plan, self.store = plan, FleetStore(self.directory)
        self.broker.store = self.store
        clock = ListeningClock(SECOND_US, lambda: self.now_us, lambda: self.now_us)
        terms = WaitingTerms(roster=[ME.device])
        settings = GatewaySettings(
            name, terms=terms, commit_us=1, results_us=SECOND_US, home_assistant=home
        )
        given = (plan, self.store, settings, clock, 7, f"{self.starts:016x}")
        self.run = GatewayRun(*given, say=lambda _: None)
        self.run.connected()
        self.turn()

    def turn(self, *frames):
        for frame in frames:
            self.run.hear(topic_of(frame, TOPICS), frame.encode())
        self.now_us += 10 * SECOND_US  # all that is due
        self.run.turn(self.broker)
        return set(self.broker.retained)

    def window(self, value=9):
        """Let one more window be final, of the attic where there are keys."""
        start_us, self.now_us = self.now_us, self.now_us + 10 * SECOND_US
        self.number += 1
        (window,) = self.plan.windows.values()
        changes = {
            "stream": window.stream,
            "columns": ((1,), (value,))[: len(window.fold.columns)],
            "keys": ("attic" if window.keyed else "",),
            "panes_us": (start_us,),
            "seqs": (self.number,),
        }
        name, store = self.run.acceptance.sink
        passed = beat(self.number, start_us + 10 * SECOND_US, sink=name, store=store)
        return self.turn(panes(house(), self.number, **changes), passed)


@pytest.fixture
def gateway(tmp_path):
    made = Gateway(tmp_path)
    made.start(house())
    assert {BY_ROOM, HOT} < made.window()
    yield made
    made.store.close()


def test_a_window_and_an_alert_that_left_the_program_leave_their_topics(gateway):
    gateway.start(house(named="other"))
    assert not {BY_ROOM, HOT} & set(gateway.broker.retained)


def test_a_clearing_that_the_broker_did_not_take_is_made_again_on_the_next_connection(gateway):
    gateway.broker.is_there = False
    gateway.start(house(named="other"))
    gateway.broker.is_there = True
    gateway.start(house(named="other"))
    assert not {BY_ROOM, HOT} & set(gateway.broker.retained)
    gateway.run.connected()
    gateway.turn()
    gateway.turn()
    facts = "".join(gateway.store.facts().values())
    assert BY_ROOM not in facts, "what is cleared for sure is forgotten"


def test_a_window_without_keys_any_more_leaves_those_of_its_keys(gateway):
    gateway.start(house(keyed=False))
    assert not {BY_ROOM, HOT, WHOLE} & set(gateway.broker.retained)
    assert WHOLE in gateway.window()
    gateway.start(house())
    assert WHOLE not in gateway.broker.retained


def test_a_window_of_another_fold_leaves_the_topics_of_keys_that_are_quiet(gateway):
    gateway.start(house(fold=folds.count(), alert=False))
    assert BY_ROOM not in gateway.broker.retained
    assert BY_ROOM in gateway.window()


def test_a_key_that_is_quiet_keeps_its_topic(gateway):
    before = gateway.broker.retained[BY_ROOM]
    with gateway.store._db as db:
        db.execute("DELETE FROM revision")  # As if a thousand windows of others had come since.
    gateway.start(house())
    assert gateway.broker.retained[BY_ROOM] == before


def test_without_home_assistant_the_gateway_is_no_device_of_it_any_more(gateway):
    gateway.start(house(), home="homeassistant")
    assert HOME in gateway.broker.retained
    gateway.start(house())
    assert HOME not in gateway.broker.retained
    assert {BY_ROOM, HOT} < set(gateway.broker.retained)


def test_under_another_name_it_clears_nothing_of_the_former(gateway):
    gateway.start(house(named="other"), name="second")
    assert {BY_ROOM, HOT} < set(gateway.broker.retained)
    gateway.start(house(named="other"))
    assert {BY_ROOM, HOT} < set(gateway.broker.retained)
