"""What a program declares, in short: a store, a gateway and a lake keep it beside its data.

So a program that is to follow can be compared with the one that made the data, whose text may be
gone. Functions are in it by the ids that their versions give, not as text.

>>> from lasp_edge.examples.greenhouse import program
>>> summary = ProgramSummary.of(program.plan())
>>> summary.windows["temperature_by_room"].size_us, summary.variables["samples"].kept
(60000000, 'the last 100')
>>> ProgramSummary.from_text(summary.text) == summary
True
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Final, NamedTuple, Self

from crdts import BoundedLWWSet
from lasp_edge.language.declarations import AnyFold, Window
from lasp_edge.language.meaning import kept_in_words
from lasp_edge.language.plan import Plan
from lasp_edge.variables import Variable


class EventSummary(NamedTuple):
    """An event: its step as text, its unit, whether it is a text, and what is plausible."""

    step: str
    unit: str
    text: bool
    plausible: str


class WindowSummary(NamedTuple):
    """A window: the id of its panes, its size and slide, and whether a stream is its source."""

    stream: int
    size_us: int
    slide_us: int
    of_stream: bool


class VariableSummary(NamedTuple):
    """A variable: its meaning as text, and which samples it keeps in words; "" of other states."""

    meaning: str
    kept: str


class ProgramSummary(NamedTuple):
    """What a program declares, by name.

    Attributes:
        name: the program's.
        values: name -> the stream id of each value of a device or of the fleet, but for those of
            devices of which the fleet's are made.
        streams: name -> a digest of what each stream means.
        results: name -> the stream id of the rows.
        alerts: name -> the condition.
        parameters: name -> the declaration.
        fleet: stream over the fleet, or filter before one -> the ids of what leaves devices for it.
    """

    name: str
    events: Mapping[str, EventSummary]
    windows: Mapping[str, WindowSummary]
    variables: Mapping[str, VariableSummary]
    values: Mapping[str, int]
    streams: Mapping[str, str]
    results: Mapping[str, int]
    alerts: Mapping[str, str]
    parameters: Mapping[str, str]
    fleet: Mapping[str, Sequence[int]] = MappingProxyType({})

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return the summary of a plan."""
        sent = plan.published_folds.keys()
        folds: list[tuple[str, AnyFold]] = [
            *plan.local_folds.items(),
            *plan.dynamic_folds.items(),
        ]
        return cls(
            plan.name,
            {
                name: EventSummary(
                    each.resolution.text,
                    each.unit,
                    each.text,
                    "" if each.plausible is None else each.plausible.span,
                )
                for name, each in plan.events.items()
            },
            {name: _window(plan, each) for name, each in plan.windows.items()},
            {
                name: VariableSummary(meaning.text, _kept(plan.variables[name]))
                for name, meaning in plan.meanings.items()
            },
            {name: fold.stream for name, fold in folds if name not in sent},
            {name: _digest(each.fingerprint) for name, each in plan.streams.items()},
            {name: each.stream for name, each in plan.stream_results.items()},
            {name: each.identity for name, each in plan.alerts.items()},
            {name: repr(each) for name, each in plan.parameters.items()},
            _fleet(plan),
        )

    @property
    def text(self) -> str:
        """The summary as text; equal programs, equal text."""
        return json.dumps(self._asdict() | {"fleet": dict(self.fleet)}, ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Return the summary that gave a text.

        Raises:
            ValueError: the text is no summary, or that of another release.
        """
        try:
            plain = json.loads(text)
            for field, kind in _ENTRIES.items():
                plain[field] = {name: kind(*each) for name, each in plain[field].items()}
            return cls(**plain)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no summary of a program: {error}") from error


NO_SUMMARY: Final = (
    "no program is noted here: an earlier release wrote it, or nothing has run yet. Start the {0} "
    "once with this release and the program that it has, or compare with that program's file"
)
"""What to do where data have no summary beside them."""


class RanProgram(NamedTuple):
    """The program that a store, a gateway or a lake has run.

    Attributes:
        whose: for people, where that is.
        notes: for people, what is there of it, in a line each.
    """

    whose: str
    summary: ProgramSummary
    notes: tuple[str, ...] = ()


_ENTRIES = {"events": EventSummary, "windows": WindowSummary, "variables": VariableSummary}


def _window(plan: Plan, window: Window) -> WindowSummary:
    of_stream = window.source.name in plan.streams
    return WindowSummary(window.stream, window.size_us, window.slide_us, of_stream)


def _fleet(plan: Plan) -> dict[str, list[int]]:
    """Return what leaves devices for each stream that only a gateway or a lake has."""
    items, found = plan.item_streams, dict[str, list[int]]()
    for name, each in plan.fleet_streams.items():
        of = {item for s in each.sources for item in found.get(s, ())}
        of |= {items[s].stream for s in each.sources if s in items}
        found[name] = sorted(of)
    return {name: of for name, of in found.items() if name not in plan.device_streams}


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _kept(variable: Variable) -> str:
    bottom = variable.bottom
    if not isinstance(bottom, BoundedLWWSet):
        return ""
    return kept_in_words(bottom) + (f" (parameter {variable.bound})" if variable.bound else "")
