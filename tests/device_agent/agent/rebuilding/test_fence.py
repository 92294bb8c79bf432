"""On a lost or older store: what an earlier life had read is never made anew."""

from shutil import copytree, rmtree

import pytest

from crdts import Replica
from device_agent.agent.intake.batch import Batch
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.protocol.fencing import ProcessReport
from lasp_edge.units import SECOND_US as S
from tests.device_agent.agent.rebuilding.test_missing import PLAN, Fleet, floor_told
from tests.device_agent.agents import NOW_US


@pytest.fixture
def restored(tmp_path):
    """A device on an older image of its store; another life had read on until 100 s."""
    fleet = Fleet(tmp_path / "store")
    device = fleet.device
    device.read([20.0], [NOW_US], {"room": "hall"})
    device.tick()
    device.kill()
    copytree(tmp_path / "store", tmp_path / "image")
    device.start()
    device.read([21.0, 22.0], [NOW_US + 60 * S, NOW_US + 100 * S], {"room": "hall"})
    device.tick()
    told = ProcessReport(Replica(2, 2, device.name), device.core.fence.source_highs())
    device.kill()
    rmtree(tmp_path / "store")
    copytree(tmp_path / "image", tmp_path / "store")
    device.start()
    device.core.intake.peer_reports.learn(told, device.now_us)
    return fleet


def test_panes_that_another_life_had_read_are_never_built(restored):
    last_us, device = NOW_US + 300 * S, restored.device
    device.read([23.0], [last_us], {"room": "hall"})
    device.tick()
    restored.say("offset", "", NOW_US - 60 * S, "3")
    restored.build()
    for name in ("sums", "by_room"):
        regimes = WindowRegimes(PLAN.windows[name], PLAN.functions, restored.log, "cellar")
        streams = {piece.stream: piece.span_us for piece in regimes.pieces}
        built = {(p.pane_us, p.stream) for p, _ in device.rows() if p.stream in streams}
        assert built, name
        for pane_us, stream in built:
            assert pane_us <= last_us < pane_us + streams[stream], name


def test_a_beat_of_an_older_image_tells_from_when_on_it_has_them_again(restored):
    """What another life had read until 100 s is not here: panes of it are never made anew."""
    assert floor_told(restored.device) == NOW_US + 100 * S + 1


def last_of(fleet, name="by_room", device="cellar"):
    """Return the partials of the pane that begins at 100 s, which the earlier life had begun."""
    regimes = WindowRegimes(PLAN.windows[name], PLAN.functions, fleet.log, device)
    streams = {piece.stream for piece in regimes.regime_at(NOW_US + 105 * S).pieces}
    return [
        row.partial
        for pane, row in fleet.device.rows()
        if pane.stream in streams and pane.pane_us == NOW_US + 100 * S
    ]


def test_what_comes_to_a_pane_of_an_earlier_life_counts_beside_what_that_had_sent(restored):
    restored.device.read([23.0], [NOW_US + 105 * S], {"room": "hall"})
    restored.device.tick()
    assert last_of(restored) == [(1, 230)]


@pytest.mark.parametrize("began", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_under_a_later_log_it_is_left_out_as_nothing_is_there_to_stand_beside(
    restored, began, restarts
):
    device = restored.device
    device.tick()
    if began:
        device.read([23.0], [NOW_US + 105 * S], {"room": "hall"})
        device.tick()
    restored.say("offset", "", NOW_US - 60 * S, "3")
    restored.build()
    if restarts:
        device.restart()
    device.read([24.0, 25.0], [NOW_US + 106 * S, NOW_US + 117 * S], {"room": "hall"})
    restored.build()
    assert last_of(restored) == []
    regimes = WindowRegimes(PLAN.windows["by_room"], PLAN.functions, restored.log, "cellar")
    (piece,) = regimes.regime_at(NOW_US + 117 * S).pieces
    after = [
        row.partial
        for p, row in device.rows()
        if (p.stream, p.pane_us) == (piece.stream, NOW_US + 110 * S)
    ]
    assert after == [(1, 280)], "what comes after the doubt is whole"


def test_what_was_read_before_another_life_was_found_counts_once(tmp_path):
    """Readings wait for the next commit; meanwhile the device goes on as a later replica."""
    fleet = Fleet(tmp_path)
    device = fleet.device
    device.core.hold(
        Batch(
            "test",
            ["temperature"] * 2,
            [NOW_US + S, NOW_US + 40 * S],
            [21.0, 22.0],
            [{"room": "hall"}] * 2,
        ),
        device.now_us,
    )
    device.core.become(Replica.checked(7, 3, "cellar"))
    device.read([23.0], [NOW_US + 41 * S], {"room": "hall"})
    device.tick()
    fleet.check()
    fleet.say("offset", "", NOW_US, "3")
    fleet.build()
    fleet.check()
