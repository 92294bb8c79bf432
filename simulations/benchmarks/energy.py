"""Energy: the load of each slice of time of a house, whose plugs have a device each.

It is the program that `local_events` measures, twice: with readings that leave their devices, and
with readings that stay there. The scan with a model shows what a share takes that always differs.

Source: Jerzak and Ziekow, "The DEBS 2014 Grand Challenge", DEBS 2014; as a synchronised scan:
Kallas, Niksic, Stanford and Alur, "Flumina", PPoPP 2022, section 4.3.
"""

from typing import Any, Final

from lasp_edge import Event, Program, folds, scans

State = tuple[int, int, tuple[int, ...]]


class Load(scans.Synchronised):
    """The mean load of each slice, and a guess of the next one: readings, total, slices before."""

    name, parts = "load", {"watts": "1", "next": "1"}
    zero = empty = (0, 0, ())
    depends = (("slice", "power"), ("slice", "slice"))

    def step(self, state: State, event: Event) -> tuple[State, list[tuple[int, int]]]:
        count, total, before = state
        if event.name == "power":
            return (count + 1, total + round(event.value), before), []
        now = total // max(count, 1)
        guess = (now + sum(before) // max(len(before), 1)) // 2
        return (0, 0, (*before, now)[-48:]), [(now, guess)]

    def join(self, state: State, part: State) -> State:
        return state[0] + part[0], state[1] + part[1], state[2]


class Model(scans.Synchronised):
    """The load of each slice, and the sums and the model of ten numbers of the slice before."""

    name, parts = Load.name, Load.parts
    depends = Load.depends
    zero = ((0,) * 10, (0, 0, 0))

    def step(self, state: Any, event: Event) -> tuple[Any, list[tuple[int, int]]]:
        model, (count, total, squares) = state
        value = round(event.value)
        if event.name == "power":
            return (model, (count + 1, total + value, squares + value * value)), []
        now = total // max(count, 1)
        return ((*model[1:], now), (0, 0, 0)), [(now, sum(model) // len(model))]

    def share(self, state: Any) -> Any:
        return state[0], (0, 0, 0)

    def join(self, state: Any, part: Any) -> Any:
        return state[0], tuple(sum(pair) for pair in zip(state[1], part[1], strict=True))


def house_of(event: Event) -> str:
    """Return the house that a reading is of."""
    return event.tags["house"]


def made(scan: type[scans.Synchronised[Any]] = Load, **more: Any) -> Program:
    """Return the program, with what else its scan is given."""
    program = Program("energy")
    power = program.event("power", resolution="1", unit="W")
    end = program.event("slice", resolution="1")
    found = program.scan("load", source=[power, end], key=house_of, scan=scan, **more)
    program.result(found)
    return program


def _windowed() -> Program:
    """Return a program with the mean load of each minute: it needs no order."""
    program = Program("energy")
    power = program.event("power", resolution="1", unit="W")
    program.window("load", source=power, fold=folds.mean(), size_s=60)
    return program


sent: Final = made()
windowed: Final = _windowed()
local: Final = made(local="power")
modelled: Final = made(Model, local="power")
