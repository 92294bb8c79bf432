"""Simulated rooms, each with a thermometer of its own: they differ, so that agreement shows."""

import json
from collections.abc import Collection, Iterator
from random import Random

ROOMS = {"attic": 27.5, "bedroom": 18.4, "cellar": 12.1, "kitchen": 22.6, "office": 20.9}
"""How warm each room is on the average, in °C."""
HOUSE = dict(
    sorted(
        {
            **ROOMS,
            "bathroom": 23.4,
            "garage": 9.3,
            "hall": 17.2,
            "nursery": 21.5,
            "shed": 7.8,
        }.items()
    )
)
"""The same of the ten rooms that are measured where no Spark runs beside them."""
EVENTS = frozenset({"room_temperature", "temperature", "humidity"})
"""Events of the rooms. The first is not among the machine's own, whose chip is warm, too."""
MACHINE = frozenset({"cpu", "memory", "load", "network"})
"""Events of the machine alone (`device_agent.agent.sources.host`)."""
_STEP_C, _PULL = 0.05, 0.05
_HUMIDITY_AT_0, _PER_DEGREE = 90.0, 2.0


def source_words(events: Collection[str]) -> list[str]:
    """Return the sources of agents whose program has these events.

    A temperature is that of the rooms, unless the program asks for more of the machine.

    >>> source_words(["temperature"]), source_words(["temperature", "cpu"])
    (['--source', 'stdin', '--tag', 'room=room'], ['--source', 'host', '--every', '0.2'])
    """
    of_rooms, of_machine = EVENTS.intersection(events), MACHINE.intersection(events)
    words = ["--source", "stdin", "--tag", "room=room"]
    host = ["--source", "host", "--every", "0.2"]
    if "room_temperature" in of_rooms and of_machine:
        return [*host, *words]
    return words if of_rooms and not of_machine else host


def measurements(room: str, chance: Random) -> Iterator[str]:
    """Yield the lines of a room's sensor, as JSON without end; it wanders about its average."""
    mean_c = celsius = HOUSE[room]
    while True:
        celsius += chance.gauss(0.0, _STEP_C) + (mean_c - celsius) * _PULL
        shown = round(celsius, 2)
        humidity = round(_HUMIDITY_AT_0 - _PER_DEGREE * celsius, 1)
        yield json.dumps(
            {"room": room, "room_temperature": shown, "temperature": shown, "humidity": humidity}
        )
