"""Windows over streams that a program changes, and changes back: whatever the fold."""

import pytest

from lasp_edge import Program, folds, scans
from lasp_edge.protocol.frames import BeatFrame
from tests.device_agent.agent.scans.test_retraction import take_back

FOLDS = {
    "mean": folds.mean,
    "max": folds.max,
    "struct": lambda: folds.struct(n=folds.count(), first=folds.first(), last=folds.last()),
    "quantile": lambda: folds.quantile(0.5),
}


def program(size_s, fold, *, other=False):
    """Return a program of a window over readings that a map has halved; perhaps with a scan."""
    made = Program("water")
    litres = made.event("litres", resolution="0.5")
    halves = made.map(litres, lambda event: event.value / 2, "halves", resolution="0.5")
    made.window("w", source=halves, fold=FOLDS[fold](), size_s=size_s, key=lambda e: e.tags["tap"])
    if other:
        made.result(made.scan("steps", source=litres, scan=scans.changes(), per_device=True))
    return made.plan()


def run(device, plan):
    device.kill()
    device.program, device.sent = plan, []
    device.start()


@pytest.mark.parametrize("other", [False, True], ids=["", "a scan, too"])
@pytest.mark.parametrize("fold", FOLDS)
def test_a_window_that_is_changed_and_changed_back_has_every_reading(begin, fold, other):
    device = begin(program=program(60, fold))
    device.meter([(5 * n, 100 + n, "ab"[n % 2]) for n in range(16)])
    device.land()
    changed = program(90, fold, other=other)
    for at_s, plan in ((80, changed), (125, program(60, fold)), (170, changed)):
        run(device, plan)
        device.meter([(at_s + 5 * n, 300 - n, "ab"[n % 2]) for n in range(9)])
        device.land()
        device.meter([(at_s - 70, 40.5, "a"), (at_s - 61, 40 + at_s, "b")])
        device.land()
        device.check()
        assert not any(beat.begun for beat in device.frames(BeatFrame)[-1:])
        assert "failed" not in str(device.counted)


def test_a_window_that_cannot_lose_what_was_taken_back_is_said_to_lack_readings(begin):
    device = begin(program=program(60, "max"))
    device.meter([(n, 100 + n, "a") for n in range(50)])
    device.land()
    run(device, program(60, "mean"))
    take_back(device, [(49, 149, "a")])
    device.land()
    plan = program(60, "max")
    for start in range(2):
        run(device, plan)
        device.meter([(55 + start, 7, "a")])
        device.land()
        assert [stream for stream, _ in device.frames(BeatFrame)[-1].begun] == [
            plan.windows["w"].stream
        ]


@pytest.mark.parametrize("others", [[], [{"change": "0.5"}]], ids=["left out", "other parts"])
def test_a_result_that_is_changed_and_changed_back_has_every_row(begin, others):
    def program(*parts):
        made = Program("water")
        litres = made.event("litres", resolution="0.5")
        used = made.scan("used", source=litres, scan=scans.differences(), per_device=True)
        made.window("w", source=used, fold=folds.sum(), size_s=60, key=lambda e: e.key)
        for each in parts:
            made.result(used, parts=each)
        return made.plan()

    first, other = program(None), program(*others)
    device = begin(program=first)
    device.meter([(5 * n, 100 + n, "a") for n in range(16)])
    device.land()
    for at_s, plan in ((80, other), (125, first), (170, other), (215, first)):
        run(device, plan)
        device.meter([(at_s + 5 * n, 300 - n, "a") for n in range(9)])
        device.meter([(at_s - 63, 40 + at_s, "a")])
        device.land()
        device.check()
