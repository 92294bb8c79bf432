"""What is heard of shared variables is news once, and what is in no form is refused."""

import pytest

from crdts import Counter, Replica, encode
from lasp_edge import Program, folds
from lasp_edge.protocol.fitting import PartialsRefusedError, check_partials
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.sharing import SharedFrame

ME = Replica(1, 7, "pi-0")


def test_a_part_is_news_once_and_is_known_from_then_on():
    heard = Overheard({"total": (5, Counter().bottom())})
    part = Counter().increment(ME, 3)
    frame = SharedFrame(ME, 1, "total", 5, 0, encode(part))
    assert heard.take(frame) == part
    assert heard.take(frame) is None
    assert heard.states == {"total": part}


def test_packed_partials_are_looked_at_though_they_stand_alone():
    program = Program("house")
    fold = program.window(
        "p90", source=program.event("warm"), fold=folds.quantile(0.9), size_s=10
    ).fold
    check_partials(fold, [[fold.lift(2000, 0)[0]]])
    with pytest.raises(PartialsRefusedError):
        check_partials(fold, [[b"junk"]])
