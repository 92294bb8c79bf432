"""What an operator says, as entries of the log; and the log as people read it.

>>> from lasp_edge import Program
>>> above = Program("greenhouse").parameter("above", "28", unit="°C")
>>> log = said(ControlLog(), above, "", "30", 600, 900, "ann")
>>> [line.split(", then ") for line in schedule_lines(above, log)][0][1:]
['30 °C until 1970-01-01 00:00:00.000900 UTC', '28 °C']
"""

from collections.abc import Iterator
from typing import NamedTuple

from crdts import ControlLog, ControlPlace
from crdts.control_log import BEFORE_ALL_US, FLEET, INHERITED
from lasp_edge.language.declarations import Parameter
from lasp_edge.language.forms import steps_of
from lasp_edge.language.parameters import canonical, shown
from lasp_edge.tool.times import shown_time


class Saying(NamedTuple):
    """What an operator says of a parameter; see `said`."""

    parameter: Parameter
    scope: str
    value: str | None
    from_us: int
    until_us: int | None
    author: str

    def delta(self, log: ControlLog) -> ControlLog:
        """Return the delta that says it."""
        return said(log, *self)

    def changes(self, log: ControlLog) -> bool:
        """Return whether anything is different after it."""
        return self._lane(log) != self._lane(log | self.delta(log))

    def _lane(self, log: ControlLog) -> dict[ControlPlace, str]:
        """Return place -> what it means, of the parameter and scope."""
        return {
            at: text if text == INHERITED else canonical(self.parameter, text)
            for at, text in log.of(self.parameter.name, self.scope).value.items()
        }


def said(
    log: ControlLog,
    parameter: Parameter,
    scope: str,
    value: str | None,
    from_us: int,
    until_us: int | None,
    author: str,
) -> ControlLog:
    """Return the delta in which a parameter has a value from one time until another.

    What was said of the time between is taken back; what holds after it goes on then.

    Args:
        log: all that is known.
        parameter: of which something is said.
        scope: a device, or "" for the fleet.
        value: the value; None takes the place at `from_us` back.
        from_us: from when on.
        until_us: until when; None: until the next place.
        author: who says it.
    """
    name = parameter.name
    before = log.of(name, scope).value
    known = log.copy()

    def say(at_us: int, text: str | None) -> None:
        nonlocal known
        known |= known.say(name, scope, at_us, text, author)

    say(from_us, value)
    if until_us is not None:
        for at in before:
            if from_us < at.from_us < until_us:
                say(at.from_us, None)
        if ControlPlace(name, scope, until_us) not in before:
            earlier = [text for at, text in before.items() if at.from_us <= until_us]
            say(until_us, earlier[-1] if earlier else INHERITED)
    return known - log


def schedule_lines(parameter: Parameter, log: ControlLog) -> Iterator[str]:
    """Yield what a parameter is worth over time, for the fleet and for each device by itself."""
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
