"""A program's functions, run on made-up readings as an agent would run them on real ones.

Keys, handlers, filters and reactions are tried before there is a device: on readings of several
sizes, and on values of folds, those without any sample too. A made-up reading has no tags but those
that a function asks for and cannot do without; so the tags that sources must give become known.
What functions do beside what they return, such as switching something on, they do here as well.

    >>> from lasp_edge.examples.greenhouse import program
    >>> found = tried(program.plan())
    >>> found.wrong, found.doubts, found.tags
    ([], [], {'temperature': {'room': ['key of window temperature_by_room']}})
"""

import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

from crdts import ControlLog, Lattice, Replica
from lasp_edge.checking.readings import (
    MADE_UP_TAG,
    VALUES,
    constants,
    devices_of,
    made_up_tag,
    plausible,
    table_keys,
    tag_choices,
    texts_of,
    values_of,
)
from lasp_edge.checking.removals import SetChanges
from lasp_edge.dataflow.engine import Dataflow
from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.folds.numbers import Refused
from lasp_edge.language.acting import FoldValue
from lasp_edge.language.declarations import DynamicFold, EventType
from lasp_edge.language.derivations import dataflow_of
from lasp_edge.language.plan import Plan
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.language.updates import Mutation, Update
from lasp_edge.reasons import reason_of

MOST_TAGS = 64
"""Tags that a function may ask for, one after the other."""
MORE_READINGS = 60
"""Readings of each event, with other tags each, where a function was not reached; of a set that is
to have more elements, twice as many as these."""
MOST_READINGS = 2_000
"""Such readings of each event, at most."""
_KEY = "made-up key"
_FIRST_US = 1_700_000_000_000_000


@dataclass
class Findings:
    """The findings of running a program's functions.

    Attributes:
        wrong: functions that cannot work: they raised something for all that was tried.
        doubts: functions that may go wrong.
        untried: functions that nothing made-up reached.
        unreached: streams of which one alone, of made-up items, had none.
        reached: windows and results of which a run of the whole had rows.
        costs: a line for each scan.
        tags: event -> tag that its readings must have -> the functions that ask for it.
        spare_tags: event -> the tags that its readings may have, and functions can do without.
    """

    wrong: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    untried: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    costs: list[str] = field(default_factory=list)
    tags: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    spare_tags: dict[str, set[str]] = field(default_factory=dict)


def tried(plan: Plan, tags: Mapping[str, str] | None = None) -> Findings:
    """Return the findings of running a program's functions; their output is not shown.

    Args:
        plan: of a program whose functions can be called (see `handlers.uncallable`).
        tags: of the made-up readings; None: whatever functions ask for.
    """
    trial = _Trial(plan, tags)
    with redirect_stdout(io.StringIO()):
        trial.run()
    return trial.found()


class _Tags(dict[str, str]):
    """The tags of a reading; notes which it was asked for and lacks."""

    lacking = ""

    def __missing__(self, name: str) -> str:
        self.lacking = name
        raise KeyError(name)


class _Record:
    """How often a function was tried, and its first error."""

    def __init__(self) -> None:
        self.times = self.failed = 0
        self.first = ""


class _Trial:
    def __init__(self, plan: Plan, tags: Mapping[str, str] | None) -> None:
        self._plan, self._given = plan, tags
        self._records: dict[str, _Record] = {}
        self._tags: dict[str, dict[str, list[str]]] = {}
        self._device, _ = devices_of(plan)
        self._replica = Replica(1, 1, self._device)
        self._states = {
            name: variable.bottom.copy()
            for name, variable in plan.own_variables.items()
            if variable.bottom is not None
        }
        self._set_changes = SetChanges(plan)
        self._reached: list[tuple[int, Any]] = []
        self._turn: int | None = None
        self._choices: dict[str, tuple[tuple[str, ...], bool]] = {}
        examples = any(event.examples for event in plan.events.values())
        self._is_open = tags is None and not examples  # else the user says what is tried
        self._flow = self._dataflow() if plan.followed else None
        self._regimes = [
            WindowRegimes(window, plan.functions, ControlLog())
            for window in plan.windows.values()
            if not window.is_plain
        ]

    def run(self) -> None:
        """Run everything."""
        for event in self._plan.events.values():
            for number, (value, quantised) in enumerate(_read_values(event)):
                self._read(event, value, quantised, _FIRST_US + number * 1_000_000)
        for watched, handler in zip(
            self._plan.reactions, self._plan.functions.reacting, strict=True
        ):
            what = f"on_value of {watched.variable}"
            for value in self._fold_values(watched.variable, watched.part):
                if value.number is None and watched.trigger is not None:
                    continue  # without a sample no condition holds
                update = Update(self._plan, value=value, value_of=self._value_of)
                example = f"the value {value.number if value.number is not None else value.parts}"
                self._try(what, example, partial(self._changed, handler, value, update))
        self._react()
        self._go_on()

    def _go_on(self) -> None:
        """Give more readings, whose values and tags differ, until each function was reached.

        What these readings bring to functions that were reached before is not noted.
        """
        counts = [getattr(threshold, "number", 0) for _, threshold in self._plan.awaited]
        most = min(max([MORE_READINGS, *[2 * count for count in counts]]), MOST_READINGS)
        texts, numbers = constants(self._plan)
        several = [
            (event, values_of(event, texts, numbers)) for event in self._plan.events.values()
        ]
        for self._turn in range(most):
            if all(record.times for record in self._records.values()):
                return
            for event, values in several:
                value = values[self._turn % len(values)]
                if event.text and not event.examples and self._turn >= len(values):
                    value = f"{self._turn} {MADE_UP_TAG}"
                quantised = 0 if event.text else event.resolution.quantise(value)
                time_us = _FIRST_US + (len(VALUES) + self._turn) * 1_000_000
                self._read(event, value, quantised, time_us)

    def _tag(self, name: str) -> str:
        """Return what a reading has for a tag: at first the same, then another one each turn."""
        if self._turn is None:
            return made_up_tag(self._plan, name)
        if name not in self._choices:
            known = tag_choices(self._plan, {name})[name]
            self._choices[name] = known, bool(table_keys(self._plan, name))
        known, is_table = self._choices[name]
        if self._turn < len(known) or is_table:
            return known[self._turn % len(known)]
        return f"{self._turn}"

    def found(self) -> Findings:
        """Return the findings."""
        result = Findings(tags={event: tags for event, tags in self._tags.items() if tags})
        for what, record in self._records.items():
            if not record.times and what.startswith("on_threshold ") and self._is_open:
                result.doubts.append(
                    f"{what}: no made-up readings reach it, however many and with whatever tags; "
                    "is it possible? If so, try it in a test, by lasp_edge.testing.replay"
                )
            elif not record.times:
                result.untried.append(f"{what}: nothing made-up reaches it")
            elif record.failed:
                always = record.failed == record.times
                often = "each time" if always else f"{record.failed} of {record.times} times"
                result.wrong.append(f"{what} fails {often}: {record.first}")
        result.doubts += self._set_changes.lines()
        return result

    def _dataflow(self) -> Dataflow:
        plan = self._plan
        derived = {
            name: partial(self._derive, name, function)
            for name, function in plan.functions.derived.items()
        }
        flow = dataflow_of(
            replace(plan, functions=replace(plan.functions, derived=derived)), self._replica
        )
        for name in plan.derivations:
            flow.stream(name, lambda _news: None)
        for name in derived:
            self._records[f"function of {name}"] = _Record()
        for index, (variable, threshold) in enumerate(plan.awaited):
            self._records[f"on_threshold of {variable}"] = _Record()
            flow.read(variable, threshold).then(partial(self._reach, index))
        return flow

    def _reach(self, index: int, value: Any) -> None:
        self._reached.append((index, value))

    def _derive(self, name: str, function: Callable[[Any], Any], element: Any) -> Any:
        return self._try(f"function of {name}", f"the element {element!r}", function, element)

    def _read(self, event: EventType, value: Any, quantised: int, time_us: int) -> None:
        """Give a reading to each function that readings of the event reach."""
        plan = self._plan
        keyed = [w.name for w in plan.windows.values() if w.keyed and w.source is event]
        keyed += [v.name for v in plan.collections.get(event.name, ()) if v.keyed]

        def made(tags: Mapping[str, str]) -> Event[Any]:
            return Event(event.name, value, time_us, self._device, MappingProxyType(tags))

        for name in keyed:
            what = f"key of {'window' if name in plan.windows else 'variable'} {name}"
            self._see(what, made, partial(plan.functions.key, name))
        for regimes in [each for each in self._regimes if each.window.source is event]:
            counted = partial(_counted, regimes, quantised)
            self._see(f"value= and where= of window {regimes.window.name}", made, counted)
        for handler in plan.functions.handlers.get(event.name, ()):
            named = getattr(handler, "__name__", type(handler).__name__)
            for value_of in (None, self._value_of) if event.name in plan.reads else (None,):
                see = partial(self._handle, handler, value_of)
                self._see(f"handler {named} of event {event.name}", made, see)
        for variable in plan.collections.get(event.name, ()):
            if not variable.keyed:
                self._apply(Mutation(variable.name, "add", (quantised, time_us)))
        self._react()

    def _handle(self, handler: Any, value_of: Any, event: Event) -> None:
        self._changed(handler, event, Update(self._plan, event, value_of=value_of))

    def _changed(self, handler: Any, given: Any, update: Update) -> None:
        """Run a handler, and make its changes."""
        handler(given, update)
        for change in update.changes:
            self._apply(change)

    def _apply(self, change: Mutation) -> None:
        self._set_changes.note(change)
        state = self._states[change.variable]
        delta: Lattice = getattr(state, change.mutator)(self._replica, *change.arguments)
        state |= delta
        self._states[change.variable] = state
        if self._flow is not None and change.variable in self._plan.followed:
            self._flow.receive(change.variable, delta)

    def _react(self) -> None:
        """Run the handlers whose thresholds were reached."""
        while self._reached:
            index, value = self._reached.pop(0)
            what = f"on_threshold of {self._plan.awaited[index].variable}"
            handler, update = self._plan.functions.reached[index], Update(self._plan)
            example = f"the value {value!r}"
            self._try(what, example, partial(self._changed, handler, value, update))

    def _see(
        self,
        what: str,
        made: Callable[[Mapping[str, str]], Event[Any]],
        function: Callable[[Event[Any]], Any],
    ) -> None:
        """Call a function with a reading, which gets the tags that the function needs."""
        known = dict(self._given or {})
        for _ in range(MOST_TAGS):
            tags = _Tags(known)
            try:
                function(made(tags))
            except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
                if tags.lacking and tags.lacking not in known and self._given is None:
                    known[tags.lacking] = self._tag(tags.lacking)
                    continue
                event = made(known)
                has = f" with the tags {known}" if known else " without tags"
                if tags.lacking and tags.lacking not in known:
                    has += f"; give them the tag, too: --tag {tags.lacking}=TEXT"
                elif self._given is None and known and _is_of_text(error):
                    given = " ".join(f"--tag {name}=TEXT" for name in known)
                    has += f"; {MADE_UP_TAG!r} is made up: say what they have, by {given}"
                shown = repr(event.value) if isinstance(event.value, str) else f"{event.value:g}"
                self._note(what, f"the reading {event.name} {shown}{has}", error)
            else:
                self._note(what)
            break
        asked = self._tags.setdefault(made({}).name, {})
        for tag in known if self._given is None else ():
            users = asked.setdefault(tag, [])
            users += [what] if what not in users else []

    def _try(self, what: str, example: str, function: Callable[..., Any], *given: Any) -> Any:
        try:
            result = function(*given)
        except BaseException as error:
            self._note(what, example, error)
            if given:  # the dataflow leaves this element aside
                raise ValueError(what) from error
            return None
        self._note(what)
        return result

    def _note(self, what: str, example: str = "", error: BaseException | None = None) -> None:
        record = self._records.setdefault(what, _Record())
        if self._turn is not None and record.times:
            return
        record.times += 1
        if error is not None:
            pass_interrupt(error)
            record.failed += 1
            record.first = record.first or f"{reason_of(error)}, for {example}"

    def _value_of(self, name: str, key: str) -> FoldValue | None:
        return next(self._fold_values(name, "", key), None)

    def _fold_values(self, name: str, part: str, key: str | None = None) -> Iterator[FoldValue]:
        """Yield values of a fold, the last of them without any sample."""
        made = self._plan.dynamic_folds.get(name) or self._plan.local_folds[name]
        local = made.source if isinstance(made, DynamicFold) else made
        fold, resolution = local.fold, local.resolution
        given = key if key is not None else _KEY if made.keyed else ""
        event = EventType("", resolution)
        for samples in [*([value] for value in _values(event)), []]:
            try:
                lifted = [fold.lift(sample, _FIRST_US) for sample in samples]
                parts = fold.lower(reduce(fold.combine, lifted, fold.zero), resolution)
            except BaseException as error:  # noqa: BLE001 - what is wrong with a fold the laws show
                pass_interrupt(error)
                continue
            shown = part or (next(iter(parts)) if len(parts) == 1 else "")
            number = parts.get(shown)
            yield FoldValue(name, given, number, parts, "made up", True, (self._device,))  # noqa: FBT003


_PARSING = ("invalid literal for int()", "could not convert string to float")
"""What Python says of a text that is no number."""


def _is_of_text(error: BaseException) -> bool:
    """Return whether an error may come of a made-up text, or of a part of it that is empty."""
    return repr(MADE_UP_TAG) in str(error) or str(error).startswith(_PARSING)


def _counted(regimes: WindowRegimes, quantised: int, event: Event) -> None:
    """Have the functions of a window see a reading, with the defaults of all parameters."""
    regimes.counted(event, quantised, regimes.regime_at(event.time_us).at)


def _read_values(event: EventType) -> Iterator[tuple[Any, int]]:
    """Yield made-up values as functions see them, and as integers."""
    if event.text:
        yield from ((text, 0) for text in texts_of(event))
        return
    yield from ((event.resolution.real(quantised), quantised) for quantised in _values(event))


def _values(event: EventType) -> Iterator[int]:
    """Yield made-up values that an event can have, as integers."""
    seen = set()
    for value in VALUES:
        try:
            quantised = plausible(event, event.resolution.quantise(value))
        except (ValueError, Refused):
            continue
        if quantised not in seen:
            seen.add(quantised)
            yield quantised
