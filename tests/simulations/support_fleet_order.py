"""Programs with one order over the fleet, and readings for them."""

from lasp_edge import Program, scans
from simulations.oracle import Reading
from simulations.world.fleet_streamed import combined

BEGIN_US = 1_764_028_800_000_000


def sessions():
    """All doors of a house, each with a device of its own."""
    program = Program("house")
    door = program.event("door", resolution="1")
    key = {"key": lambda event: event.tags["house"]}
    program.result(program.scan("visits", source=door, scan=scans.sessions(gap_s=90), **key))
    return program.plan()


def join():
    """Temperature and humidity of a room, of two devices; and what is made of both."""
    program = Program("climate")
    temperature = program.event("temperature", resolution="0.01")
    humidity = program.event("humidity", resolution="0.1")
    both = program.scan(
        "both",
        source=[temperature, humidity],
        key=lambda event: event.tags["house"],
        scan=scans.as_of(temperature, humidity, within_s=60),
    )

    def dew_point(event):
        return event.value[0] - (100 - event.value[1]) / 5

    program.result(program.map(both, dew_point, "dew_point", resolution="0.01"))
    return program.plan()


def words():
    """FlameStream's word count: its graph, and its cycle; lines come from any device."""
    program = Program("words")
    line = program.event("line", text=True)
    words = program.flat_map(
        line, lambda event: [("m", word, 1) for word in event.value.split()], "words"
    )

    counts = program.scan(
        "counts",
        source=words,
        key=lambda event: event.value[1],
        scan=scans.loop(scans.last(2), combined),
    )
    program.result(counts, parts={"kind": "text", "word": "text", "count": "1"})
    return program.plan()


def both_sides():
    """A filter before the fleet's scan, and a scan of each device over the same readings."""
    program = Program("meters")
    x = program.event("x", resolution="1")
    much = program.filter(x, lambda event: event.value > 5, "much")
    program.result(program.scan("changes", source=much, scan=scans.differences()))
    program.result(program.scan("own", source=x, scan=scans.differences(), per_device=True))
    return program.plan()


def of_outputs():
    """Sessions of each device, which timers end, and what changed much on one: in one order."""
    program = Program("rooms")
    x, door = program.event("x", resolution="1"), program.event("door", resolution="1")
    house = {"key": lambda event: event.tags["house"]}
    own = {"per_device": True}
    visit = program.scan("visit", source=door, scan=scans.sessions(gap_s=45), **house, **own)
    length = program.map(visit, lambda event: event.value[0] % 9, "length", resolution="1")
    steps = program.scan("steps", source=x, scan=scans.differences(), **house, **own)
    large = program.filter(steps, lambda event: abs(event.value) > 3, "large")
    both = program.scan("both", source=[length, large, x], scan=scans.last(3))
    three = program.filter(both, lambda event: len(event.value) == 3, "three")
    program.result(three, parts={"first": "1", "second": "1", "third": "1"})
    program.result(program.scan("rising", source=length, scan=scans.differences()))
    return program.plan()


PROGRAMS = {each.__name__: each() for each in (sessions, join, words, both_sides, of_outputs)}


def readings_of(plan, rng, count):
    """Return readings of four devices in no order; one in ten is taken back."""
    found = []
    for _ in range(count):
        event = rng.choice(sorted(plan.events))
        value = rng.randint(0, 12)
        if plan.events[event].text:
            value = " ".join(rng.choices(["a", "b", "dog"], k=rng.randint(1, 3)))
        at_us = BEGIN_US + rng.randrange(count * 20) * 1_000_000
        tags = {"house": rng.choice("ab")}
        found.append(Reading(f"pi-{rng.randrange(4)}", event, value, at_us, tags))
        if rng.random() < 0.1:
            found.append(rng.choice(found)._replace(retracted=True))
    return found
