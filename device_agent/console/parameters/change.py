"""A change of a parameter as entries of the operators' log; and the log as people read it.

>>> from lasp_edge import Program
>>> above = Program("greenhouse").parameter("above", "28", unit="°C")
>>> log = ParameterChange(above, "", "30", 600, 900, "ann").delta(ControlLog())
>>> [line.split(", then ") for line in schedule_lines(above, log)][0][1:]
['30 °C until 1970-01-01 00:00:00.000900 UTC', '28 °C']
"""

from collections.abc import Iterator
from typing import NamedTuple

from crdts import ControlLog, ControlPlace
from crdts.control_log import BEFORE_ALL_US, FLEET, INHERITED
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.parameters import canonical, shown, steps_of
from lasp_edge.tool.times import shown_time


class ParameterChange(NamedTuple):
    """A parameter has a value from one time until another.

    Entries of the time between are taken back; the value after it goes on then.

    Attributes:
        scope: a device, or "" for the fleet.
        value: the value; None takes the entry at `from_us` back.
        until_us: until when; None: until the next entry.
        author: who changes it.
    """

    parameter: Parameter
    scope: str
    value: str | None
    from_us: int
    until_us: int | None
    author: str

    def delta(self, log: ControlLog, least: int = 1) -> ControlLog:
        """Return the delta of the fleet's log that makes the change, numbered from `least` on."""
        name, scope, until_us = self.parameter.name, self.scope, self.until_us
        before = log.of(name, scope).value
        entries: list[tuple[int, str | None]] = [(self.from_us, self.value)]
        if until_us is not None:
            between = (at.from_us for at in before if self.from_us < at.from_us < until_us)
            entries += [(from_us, None) for from_us in between]
            if ControlPlace(name, scope, until_us) not in before:
                earlier = [text for at, text in before.items() if at.from_us <= until_us]
                entries.append((until_us, earlier[-1] if earlier else INHERITED))
        after = log.copy()
        for from_us, text in entries:
            after |= after.set(name, scope, from_us, text, self.author, least=least)
        return after - log

    def changes(self, log: ControlLog) -> bool:
        """Return whether anything is different after it."""
        return self._values(log) != self._values(log | self.delta(log))

    def _values(self, log: ControlLog) -> dict[ControlPlace, str]:
        """Return the values of the parameter and scope by their place."""
        return {
            at: text if text == INHERITED else canonical(self.parameter, text)
            for at, text in log.of(self.parameter.name, self.scope).value.items()
        }


def schedule_lines(parameter: Parameter, log: ControlLog) -> Iterator[str]:
    """Yield the values of a parameter over time, of the fleet and of each device with its own."""
    scopes = [scope for name, scope in log.lanes() if name == parameter.name]
    for scope in sorted({FLEET, *scopes}):
        steps: list[tuple[int, str]] = []
        for from_us, text in steps_of(log, parameter, *([scope] if scope else [])):
            if not steps or canonical(parameter, steps[-1][1]) != canonical(parameter, text):
                steps.append((from_us, text))
        words = [shown(parameter, text) for _, text in steps]
        times = [f"{shown_time(at)} UTC" for at, _ in steps if at != BEFORE_ALL_US]
        spans = [f"{word} until {at}" for word, at in zip(words, times, strict=False)]
        whose = f" of {scope}" if scope else ""
        yield f"{parameter.name}{whose}: {', then '.join([*spans, words[-1]])}"
