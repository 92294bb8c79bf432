"""What a device states of shares, beside its answers: from which ones it has gone on."""

import pytest

from device_agent.agent.settings import Settings
from lasp_edge.language import parting
from lasp_edge.ordered.answers import is_of_cell, stated, stated_at, without
from lasp_edge.ordered.parted import FIRST, basis_of
from lasp_edge.ordered.sent_outputs import sent_outputs
from lasp_edge.ordered.shared_places import SharedPlace
from lasp_edge.protocol.acks import NotTaken
from lasp_edge.protocol.frames import PaneFrame
from simulations.world.lander import SimulatedLander
from tests.device_agent.agent.scans.test_shares import (
    CELL_US,
    KNOWN,
    PLAN,
    frame,
    receive,
    stream_of,
)
from tests.device_agent.agents import NOW_US, Device
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import Epochs


def stated_by(device, plan, version, places):
    """Let a device take places; return its answers that leave for them, and its statement."""
    leaf = plan.item_streams["found: leaf"].stream
    shared = frame("a", version, places, stream=stream_of(plan), cell_us=NOW_US)
    receive(device.core.shares, shared, now_us=device.now_us)
    frames = device.frames(PaneFrame, device.tick())
    device.acknowledge(*frames)
    sent = [
        (block.keys, at, content)
        for each in frames
        for block in each.blocks
        if block.stream == leaf
        for (packed,) in block.columns
        for at, content in sent_outputs(packed).items()
    ]
    answers = [each for each in sent if not is_of_cell(each[1].place("pi"))]
    return answers, [stated(content[1]) for _, at, content in sent if at == stated_at(NOW_US)]


def test_a_share_that_is_known_later_is_stated_and_the_answer_need_not_leave_again(tmp_path):
    """What has gone on is known by the basis, and that names the share."""
    plan = plan_of("a", Epochs)
    device = Device(tmp_path, plan, settings=Settings.paced(60))
    device.take([1], [NOW_US], [{}], name="a")
    first, second = ((NOW_US + n, "x", ("b", "", 1), (1,)) for n in (1, 2))
    waits = SharedPlace("", known=False, share=None)
    answers, statements = stated_by(device, plan, 1, {first: waits})
    assert [content[1][:3] for _, _, content in answers] == [
        ("a", FIRST, without((1, 1, 1), (1, 0, 0)))
    ]
    assert statements == []
    answers, statements = stated_by(device, plan, 2, {first: KNOWN})
    assert answers == []
    (one,) = statements
    assert (one.bases, one.incarnation) == (basis_of(first, 0), 1)
    answers, statements = stated_by(device, plan, 3, {first: KNOWN, second: waits})
    assert len(answers) == 2, "the answers of a cell travel together"
    assert statements == [], "it is what it was"
    _, statements = stated_by(device, plan, 4, {first: KNOWN, second: KNOWN})
    (both,) = statements
    assert both.bases == b"".join(sorted(basis_of(each, 0) for each in (first, second)))
    answers, again = stated_by(device, plan, 5, {first: KNOWN, second: KNOWN})
    assert answers == []
    assert [each.bases for each in again] == [both.bases], "asked again: it may have been lost"
    _, statements = stated_by(device, plan, 6, {first: waits, second: waits})
    assert [each.bases for each in statements] == [b""], "a gateway that has lost what it knew"


@pytest.mark.parametrize("stream", [-(2**62), 2**32])
def test_shares_as_a_former_release_sends_them_are_refused_in_one_line(tmp_path, stream):
    """It sent all 64 bits of what names a scan."""
    device = Device(tmp_path, PLAN)
    device.hear(frame("a", 1_700_000_001, {}, stream=stream))
    why = "shares of another release: use one release everywhere"
    assert [name for name in device.counted if why in name]


def test_a_frame_tells_how_far_sources_have_come_where_readings_are_in_it(tmp_path):
    """Who has what was made of readings knows where they end, if the store is lost then."""
    plan = plan_of("a", Epochs)
    device = Device(tmp_path, plan, settings=Settings.paced(60))
    device.take([1], [NOW_US], [{}], name="a")
    place = (NOW_US + 1, "x", ("b", "", 1), (1,))
    stated_by(device, plan, 1, {place: SharedPlace("", known=False, share=None)})
    stated_by(device, plan, 2, {place: KNOWN})
    (answered, stating) = device.frames(PaneFrame)
    assert (len(answered.highs), stating.highs) == (1, ())
    device.take([1], [NOW_US + CELL_US], [{}], name="b")
    stated_by(device, plan, 3, {place: KNOWN._replace(share=5)})
    assert len(device.frames(PaneFrame)[-1].highs) == 1, "an event in order leaves with it"


@pytest.mark.parametrize("former", ["device", "gateway"])
def test_a_release_with_another_form_of_answers_is_refused_in_one_line(
    tmp_path, monkeypatch, former
):
    plan = plan_of("a", Epochs)
    monkeypatch.setattr(parting, "FORM", parting.FORM - 1)
    plans = {"device": plan, "gateway": plan} | {former: plan_of("a", Epochs)}
    assert plans["device"].digest != plans["gateway"].digest, "its presence tells all of it"
    device = Device(tmp_path, plans["device"], settings=Settings.paced(60))
    device.landed = SimulatedLander("store", plans["gateway"])
    device.take([1], [NOW_US], [{}], name="a")
    place = (NOW_US + 1, "x", ("b", "", 1), (1,))
    for side in ("gateway", "device"):  # the first one's shares are of no scan here
        shared = frame("a", 1, {place: KNOWN}, stream=stream_of(plans[side]), cell_us=NOW_US)
        receive(device.core.shares, shared, now_us=device.now_us)
        assert device.core.shares.is_waiting(device.now_us) is (side == "device")
    device.land()
    device.tick()
    (sink,) = device.core.report()["sinks"].values()
    (reason,) = sink["not_taken"]
    assert reason == NotTaken.UNKNOWN_STREAM.advice
    assert "the program and the release of this device" in reason


def test_where_the_share_is_always_the_same_nothing_is_stated(tmp_path):
    device = Device(tmp_path, PLAN, settings=Settings.paced(60))
    device.take([1], [NOW_US], [{}], name="a")
    place = (NOW_US + 1, "x", ("b", "", 1), (1,))
    answers, statements = stated_by(device, PLAN, 1, {place: KNOWN})
    assert (len(answers), statements) == (1, [])
