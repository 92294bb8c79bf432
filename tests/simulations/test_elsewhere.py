"""What a program gives in another order of readings is compared reading by reading."""

from crdts import GSet
from lasp_edge import Program
from simulations.elsewhere import outcomes
from simulations.oracle import Reading
from simulations.whole import whole


def leaving():
    """Return a program whose handler can do without a tag."""
    program = Program("kindergarten")
    who = program.event("who", text=True, examples=["mia", "tom", "eva"])
    seen = program.declare(GSet(), "seen")

    @program.on_event(who)
    def came(event, update):
        leaves = bool(event.tags.get("out"))
        update(seen, GSet.add, f"{event.tags['room']} {event.value} {leaves}")

    return program.plan()


def test_readings_that_differ_in_their_tags_alone_are_two():
    readings = [Reading("pi", "who", "mia", 0, {"room": "1", "out": out}) for out in ("", "yes")]
    found = outcomes(leaving(), readings)
    assert len(found) == len(readings)
    assert outcomes(leaving(), readings[::-1]) == found


def test_a_reading_that_comes_again_lacks_the_same_tags():
    assert whole(leaving(), {"who": {"room"}}).wrong == []
