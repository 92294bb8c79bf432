"""What becomes of the data of a fleet whose program changes: in words, before anybody releases it.

>>> from crdts import BoundedLWWSet
>>> from lasp_edge import Program, folds
>>> def program(bound, size_s):
...     made = Program("house")
...     warm = made.event("warm", resolution="0.1")
...     samples = made.declare_dynamic(BoundedLWWSet(bound=bound), "samples")
...     made.collect(warm, into=samples)
...     made.window("by_minute", source=warm, fold=folds.max(), size_s=size_s)
...     return made.plan()
>>> for line in changes(program(100, 60), program(50, 90)):
...     print(line.partition(":")[0])
window by_minute begins again
variable samples keeps other samples
kept as it is
"""

from collections.abc import Iterator, Mapping
from typing import Any

from crdts import BoundedLWWSet
from lasp_edge.checking.texts import texts_of
from lasp_edge.language.declarations import AnyFold, EventType, Window
from lasp_edge.language.meaning import Meaning, kept_in_words
from lasp_edge.language.plan import Plan

_MIXED = "as long as devices of both programs run"


def changes(old: Plan, new: Plan) -> list[str]:
    """Return a line for each thing that is not kept as it is, and one for all that is."""
    if old.name != new.name:
        names = f"the program was named {old.name} and is named {new.name}"
        return [f"another fleet: {names}; devices of both share nothing, and no store is read on"]
    found: list[str] = []
    kept: list[str] = []
    for lines in (
        _events(old, new, kept),
        _windows(old, new, kept),
        _variables(old, new, kept),
        _values(old, new, kept),
        _streams(old, new, kept),
        _acting(old, new),
        _texts(old, new),
    ):
        found += lines
    return [*found, f"kept as it is: {', '.join(kept) or 'nothing'}"]


def _events(old: Plan, new: Plan, kept: list[str]) -> Iterator[str]:
    for name in old.events.keys() - new.events.keys():
        yield f"event {name} is gone: its readings are refused as of an unknown event"
    for name, event in new.events.items():
        before = old.events.get(name)
        if before is None:
            yield f"event {name} is new: devices of the former program refuse its readings"
        elif before == event:
            kept.append(f"event {name}")
        else:
            yield from _event(before, event)


def _event(before: EventType, event: EventType) -> Iterator[str]:
    what = f"event {event.name}"
    if before.unit != event.unit:
        yield (
            f"{what} has another unit, {event.unit or 'without a name'} after "
            f"{before.unit or 'one without a name'}: what is stored is not converted, and is added "
            f"up with what comes; {_MIXED} each raises an alarm that names both"
        )
    if before.plausible != event.plausible:
        yield f"{what} has another plausible range: what was accepted stays"
    if before.text != event.text:
        yield f"{what} was {_kind(before)} and is {_kind(event)}: what is made of it begins again"
    elif before.resolution != event.resolution:
        steps = f"{before.resolution.text} to {event.resolution.text}"
        yield (f"{what} has other steps, {steps}: a former reading that comes again is a new one")


def _kind(event: EventType) -> str:
    return "a text" if event.text else "a number"


def _windows(old: Plan, new: Plan, kept: list[str]) -> Iterator[str]:
    for name in sorted(old.windows.keys() - new.windows.keys()):
        yield (
            f"window {name} is gone: what devices have not delivered of it is still delivered, and "
            "its rows stay in the lake"
        )
    for name, window in new.windows.items():
        before = old.windows.get(name)
        if before is None:
            yield f"window {name} is new: {_from_when(new, window)}"
        elif before.stream != window.stream:
            yield (
                f"window {name} begins again: it means something else, and "
                f"{_from_when(new, window)}; {_MIXED} its rows hold what devices of the new one "
                "sent, and name the others as missing. What the former one made stays in the "
                "lake, under its own id"
            )
        elif _shape(before) != _shape(window):
            yield (
                f"window {name} has another size or slide over the same panes: all are kept, and "
                "gateways and lakes make rows of the new windows from them"
            )
        else:
            kept.append(f"window {name}")


def _shape(window: Window) -> tuple[int, int]:
    return window.size_us, window.slide_us


def _from_when(plan: Plan, window: Window) -> str:
    if window.source.name in plan.streams:
        return "it is made of the readings that each device still has"
    return "it counts the readings that come from then on"


def _variables(old: Plan, new: Plan, kept: list[str]) -> Iterator[str]:
    for name in sorted(old.meanings.keys() - new.meanings.keys()):
        yield f"variable {name} is gone: {_set_aside(old.meanings[name])}"
    for name, meaning in new.meanings.items():
        before = old.meanings.get(name)
        if before is None:
            yield f"variable {name} is new: it begins empty"
        elif before != meaning:
            yield f"variable {name} {_other_meaning(before, meaning)}"
        elif (bounds := _bounds(old, new, name)) is not None:
            yield (
                f"variable {name} keeps other samples: {bounds[0]} before, {bounds[1]} now. They "
                f"go on from those that are there; {_MIXED} their values mix both, and each raises "
                "an alarm that names them"
            )
        else:
            kept.append(f"variable {name}")


def _bounds(old: Plan, new: Plan, name: str) -> tuple[str, str] | None:
    """Return which samples a variable kept, and keeps; None where that is the same."""
    before, now = (plan.variables[name] for plan in (old, new))
    if not isinstance(now.bottom, BoundedLWWSet) or not isinstance(before.bottom, BoundedLWWSet):
        return None
    words = [
        kept_in_words(each.bottom) + (f" (parameter {each.bound})" if each.bound else "")
        for each in (before, now)
        if isinstance(each.bottom, BoundedLWWSet)
    ]
    return None if words[0] == words[1] else (words[0], words[1])


def _other_meaning(before: Meaning, meaning: Meaning) -> str:
    if before.factor(meaning) is not None:
        return (
            f"is converted, {before} to {meaning}: where every sample is a whole number of the new "
            f"steps; else its samples are set aside. {_apart()}"
        )
    return f"means something else, {before} before, {meaning} now: {_set_aside(before)}. {_apart()}"


def _apart() -> str:
    return f"{_MIXED.capitalize()} they do not add up each other's samples"


def _set_aside(meaning: Meaning) -> str:
    if meaning.kind.startswith("shared "):
        return (
            "what the fleet holds of it is set aside on each device; the former program finds it "
            "again, and --drop-set-aside deletes it"
        )
    return "its samples are set aside; the former program finds them, --drop-set-aside deletes them"


def _values(old: Plan, new: Plan, kept: list[str]) -> Iterator[str]:
    folds: dict[str, AnyFold] = {**old.local_folds, **old.dynamic_folds}
    made: dict[str, AnyFold] = {**new.local_folds, **new.dynamic_folds}
    for name in sorted(folds.keys() - made.keys()):
        yield f"value {name} is gone: its rows stay in the lake"
    sent = new.published_folds.keys()
    for name, fold in made.items():
        if name in sent:
            continue  # the fleet's value tells it
        before = folds.get(name)
        if before is None:
            yield f"value {name} is new: it is made of the samples that devices have"
        elif before.stream != fold.stream:
            yield (
                f"value {name} is computed again from the samples that are there, and all devices "
                f"send it again; {_MIXED} each counts the devices of its own program alone"
            )
        else:
            kept.append(f"value {name}")


def _streams(old: Plan, new: Plan, kept: list[str]) -> Iterator[str]:
    before, now = (
        {name: each.fingerprint for name, each in plan.streams.items()} for plan in (old, new)
    )
    for name in sorted(before.keys() - now.keys()):
        yield f"stream {name} is gone"
    for name, meaning in now.items():
        if name not in before:
            yield f"stream {name} is new: it is made of the readings that each device still has"
        elif meaning != before[name]:
            yield (
                f"stream {name} means something else: each device computes it again from the "
                "readings that it still has, and what is made of it follows"
            )
        else:
            kept.append(f"stream {name}")
    for name, made in new.stream_results.items():
        known = old.stream_results.get(name)
        if known is not None and known.stream != made.stream:
            yield f"result {name}: its rows are sent again under another id; the former ones stay"


def _acting(old: Plan, new: Plan) -> Iterator[str]:
    for name, watched in new.alerts.items():
        before = old.alerts.get(name)
        if before is not None and before.identity != watched.identity:
            yield f"alert {name} has another condition: it begins as if it had never turned"
    for name in sorted(old.alerts.keys() - new.alerts.keys()):
        yield f"alert {name} is gone: what it last published stays on its topic until it is cleared"
    for name, made in new.parameters.items():
        known = old.parameters.get(name)
        if known is not None and known != made:
            yield (
                f"parameter {name} is declared otherwise: entries that are no value of it count "
                "for nothing, and another default is another window"
            )
    for name in sorted(old.parameters.keys() - new.parameters.keys()):
        yield f"parameter {name} is gone: its entries count for nobody"


def _texts(old: Plan, new: Plan) -> Iterator[str]:
    known: Mapping[str, Any] = {text.name: text for text in texts_of(old)}
    for text in texts_of(new):
        before = known.get(text.name)
        if before is not None and before.digest != text.digest and before.version == text.version:
            yield (
                f"{text.name}: its text is another one under the same version, so what both make "
                f"is added up. Raise {text.remedy} if it means something else"
            )
