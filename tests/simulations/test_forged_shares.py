"""Shares that a stranger publishes in a gateway's name: the gateway publishes above them again."""

from contextlib import contextmanager
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import pytest

from device_agent.gateway.line import awaited
from device_agent.gateway.shares import SharesPublisher
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.places import place_text
from lasp_edge.ordered.shared_places import places_in
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.shares import LAST_VERSION, SharesFrame
from lasp_edge.protocol.sinks import DEFAULT_SINK
from simulations.lake_parted import LakeBeside
from simulations.world.links import TO_BROKER, LegMessage
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import Epochs, EventWindow
from tests.simulations.test_local_events import LocalFleet
from tests.simulations.test_refused_parts import lake_rows


class OverheardFleet(LocalFleet):
    """A fleet with somebody who hears all shares, and may publish in the gateway's name."""

    def __init__(self, kind):
        self.shares: list[SharesFrame] = []
        self.panes: list[PaneFrame] = []
        super().__init__(DEFAULT_SINK, plan=plan_of("a", kind))

    def route(self, parcel):
        kind = parcel.topic.split("/")[4]
        frames = {"shares": self.shares, "pane": self.panes}.get(kind)
        if frames is not None:
            frames.append(decode(parcel.payload))
        super().route(parcel)

    def forge(self, frame: Frame, *, retain=True):
        topic, payload, *_ = Publication.of(frame, self.topics)
        self.send(LegMessage(TO_BROKER, topic, payload, retain))

    @property
    def gateway(self):
        return self.sinks[0]

    def words(self):
        return awaited(self.gateway.lander.core, DEFAULT_SINK)


@contextmanager
def fleet_of(kind):
    fleet = OverheardFleet(kind)
    try:
        yield fleet
    finally:
        fleet.close()


def without_the_last_event(frame, frames):
    """Return the content of a cell as it was before the last event in order of it."""
    of_cell = [each for each in frames if each.cell_us == frame.cell_us]
    count = len(places_in(frame.content, frame.cell_us, ("a", "b")))
    fewer = [
        each for each in of_cell if len(places_in(each.content, each.cell_us, ("a", "b"))) < count
    ]
    return fewer[-1].content if fewer else EMPTY


EMPTY = b"\x90"
FORGED = {
    "an older content above the newest": lambda now, old: replace(
        now, version=now.version + 10**6, content=old
    ),
    "one above": lambda now, old: replace(now, version=now.version + 1, content=old),
    "the greatest version": lambda now, old: replace(now, version=LAST_VERSION, content=old),
    "no event in order": lambda now, _: replace(now, version=now.version + 99, content=EMPTY),
    "events of a cell that has none": lambda now, _: replace(
        now, cell_us=now.cell_us - 30 * CELL_US, version=now.version + 5
    ),
    "events that are to come": lambda now, _: replace(
        now, cell_us=now.cell_us + 3 * CELL_US, version=now.version + 5
    ),
    "in another life's name": lambda now, old: replace(
        now,
        sender=now.sender._replace(nonce=now.sender.nonce ^ 1),
        version=now.version + 10**6,
        content=old,
    ),
}


@pytest.mark.parametrize("kind", [EventWindow, Epochs])
@pytest.mark.parametrize("retain", [True, False])
@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_a_stranger_publishes_in_the_gateways_name_is_overtaken(kind, retain, forged):
    with fleet_of(kind) as fleet:
        fleet.slices(4)
        now = fleet.shares[-1]
        fleet.forge(forged(now, without_the_last_event(now, fleet.shares)), retain=retain)
        fleet.pass_steps(2)
        fleet.slices(8)
        fleet.settle()
        assert fleet.words() == []


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_what_comes_while_the_gateway_is_off_is_overtaken(forged):
    with fleet_of(EventWindow) as fleet:
        fleet.slices(4)
        now = fleet.shares[-1]
        fleet.gateway.crash(12)
        fleet.forge(forged(now, without_the_last_event(now, fleet.shares)))
        fleet.pass_steps(3)
        fleet.slices(8)
        fleet.settle()


def forged_unheard(fleet, monkeypatch, name):
    """Let devices alone hear what is forged, and some minutes pass; return how scans stand.

    The job of a lake beside the gateway prints the same.
    """

    def hear(self, topic, _payload):
        return topic.startswith(self.subscription[:-1])

    monkeypatch.setattr(SharesPublisher, "hear", hear)
    fleet.slices(4)
    now = fleet.shares[-1]
    forged = FORGED[name](now, without_the_last_event(now, fleet.shares))
    fleet.forge(forged, retain=False)
    fleet.pass_steps(3)
    fleet.slices(8)
    lake = LakeBeside(SimpleNamespace(world=fleet, plan=fleet.plans[1]), Random(1))
    for step in range(660):
        fleet.pass_steps(1)
        if step % 20 == 0:
            lake.batch()
    words = [each for each in fleet.words() if "waiting for" not in each]
    assert lake.words() == words
    return words


@pytest.mark.parametrize(
    "name", ["an older content above the newest", "no event in order", "in another life's name"]
)
def test_what_devices_alone_have_heard_is_overtaken_after_some_minutes(name, monkeypatch):
    with fleet_of(EventWindow) as fleet:
        assert forged_unheard(fleet, monkeypatch, name) == []
        fleet.settle()


@pytest.mark.parametrize("name", ["the greatest version", "events of a cell that has none"])
def test_where_a_scan_stands_the_gateway_says_where_and_what_to_type(name, monkeypatch):
    with fleet_of(EventWindow) as fleet:
        (words,) = forged_unheard(fleet, monkeypatch, name)
        assert words.startswith("found stands at 2023-11-14 22:1")
        assert "UTC: pi-0, pi-1, pi-2 did not answer" in words
        assert "another gateway has ended, devices follow it for 10 minutes" in words
        assert words.endswith("type: lasp-edge retire pi-0")


def test_an_event_in_order_that_an_entry_takes_away_holds_nothing_after_a_restart():
    """A stranger publishes an older entry of the device again, with a greater number."""
    with fleet_of(EventWindow) as fleet:
        fleet.slices(4)
        stream = fleet.plans[1].item_streams["b"].stream
        of_b = [
            (frame, block)
            for frame in fleet.panes
            for block in frame.blocks
            if block.stream == stream
        ]
        cells = [block.panes_us for _, block in of_b]
        frame, block = next(each for each in of_b if cells.count(each[1].panes_us) > 1)
        forged = block._replace(seqs=tuple(seq + 1_000 for seq in block.seqs))
        fleet.forge(replace(frame, blocks=(forged,), number=frame.number + 1_000), retain=False)
        fleet.pass_steps(5)
        before = fleet.rows()
        lake = LakeBeside(SimpleNamespace(world=fleet, plan=fleet.plans[1]), Random(1))
        lake.batch()
        fleet.gateway.crash(3)
        fleet.slices(8)
        fleet.pass_steps(30)
        rows = fleet.rows()
        truth = fleet.truth()
        behind = truth.keys() - before.keys()
        assert len(behind) == 8
        assert {at: rows.get(at, (None,))[0] for at in behind} == {at: truth[at] for at in behind}
        lake.begin()
        lake.batch()
        in_lake = {at: row[0] for at, row in lake_rows(lake).items()}
        assert {at: in_lake.get(place_text(at)) for at in behind} == {
            at: truth[at] for at in behind
        }
