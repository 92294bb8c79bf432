"""What becomes of the data of a fleet whose program changes: in words, before anybody releases it.

>>> from crdts import BoundedLWWSet
>>> from lasp_edge import Program, folds
>>> def program(bound, size_s):
...     made = Program("house")
...     warm = made.event("warm", resolution="0.1")
...     samples = made.declare_dynamic(BoundedLWWSet(bound=bound), "samples")
...     made.collect(warm, into=samples)
...     made.window("by_minute", source=warm, fold=folds.max(), size_s=size_s)
...     return ProgramSummary.of(made.plan())
>>> for line in changes(program(100, 60), program(50, 90)):
...     print(line.partition(":")[0])
window by_minute begins again
variable samples keeps other samples
kept as it is
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lasp_edge.checking.texts import texts_of
from lasp_edge.language.halves import leaf_of
from lasp_edge.language.meaning import Meaning
from lasp_edge.language.plan import Plan
from lasp_edge.language.summary import EventSummary, ProgramSummary, VariableSummary, WindowSummary

_MIXED = "as long as devices of both programs run"


def changes(old: ProgramSummary, new: ProgramSummary) -> list[str]:
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
        _results(old, new),
        _acting(old, new),
    ):
        found += lines
    return [*found, f"kept as it is: {', '.join(kept) or 'nothing'}"]


def _events(old: ProgramSummary, new: ProgramSummary, kept: list[str]) -> Iterator[str]:
    for name in sorted(old.events.keys() - new.events.keys()):
        yield f"event {name} is gone: its readings are refused as of an unknown event"
    for name, event in new.events.items():
        before = old.events.get(name)
        if before is None:
            yield f"event {name} is new: devices of the former program refuse its readings"
        elif before == event:
            kept.append(f"event {name}")
        else:
            yield from _event(f"event {name}", before, event)


def _event(what: str, before: EventSummary, event: EventSummary) -> Iterator[str]:
    if before.unit != event.unit:
        stored = "what is stored is not converted, and is added up with what comes"
        if before.step != event.step:
            stored = (
                "no number is converted to it, and samples that are taken over in the new steps "
                "mix with those that come"
            )
        yield (
            f"{what} has another unit, {event.unit or 'without a name'} after "
            f"{before.unit or 'one without a name'}: {stored}; {_MIXED} each raises an alarm that "
            "names both"
        )
    if before.plausible != event.plausible:
        yield f"{what} has another plausible range: what was accepted stays"
    if before.text != event.text:
        yield f"{what} was {_kind(before)} and is {_kind(event)}: what is made of it begins again"
    elif before.step != event.step:
        steps = f"{before.step} to {event.step}"
        yield f"{what} has other steps, {steps}: a former reading that comes again is a new one"


def _kind(event: EventSummary) -> str:
    return "a text" if event.text else "a number"


def _windows(old: ProgramSummary, new: ProgramSummary, kept: list[str]) -> Iterator[str]:
    for name in sorted(old.windows.keys() - new.windows.keys()):
        yield (
            f"window {name} is gone: what devices have not delivered of it is still delivered, and "
            "its rows stay in the lake"
        )
    for name, window in new.windows.items():
        before = old.windows.get(name)
        if before is None:
            yield f"window {name} is new: {_made_of(window)}"
        elif before.stream != window.stream:
            yield (
                f"window {name} begins again: it means something else, and {_made_of(window)}; "
                f"{_MIXED} its rows hold what devices of the new one sent, and a gateway names the "
                "others in excluded. What the former one made stays in the lake, under its own id"
            )
        elif before != window:
            yield (
                f"window {name} has another size or slide over the same panes: all are kept, and "
                "gateways and lakes make rows of the new windows from them"
            )
        else:
            kept.append(f"window {name}")


def _made_of(window: WindowSummary) -> str:
    if window.of_stream:
        return "it is made again of the readings that each device still has"
    return (
        "each device makes it again of the readings with own times that it still has; those that "
        "got their time on arrival are lost for it"
    )


def _variables(old: ProgramSummary, new: ProgramSummary, kept: list[str]) -> Iterator[str]:
    for name in sorted(old.variables.keys() - new.variables.keys()):
        before = Meaning.from_text(old.variables[name].meaning)
        yield f"variable {name} is gone: {_set_aside(before)}"
    for name, variable in new.variables.items():
        known = old.variables.get(name)
        if known is None:
            yield f"variable {name} is new: it begins empty"
        elif known.meaning != variable.meaning:
            meanings = map(Meaning.from_text, (known.meaning, variable.meaning))
            kept_by_both = known.kept == variable.kept
            more = "" if kept_by_both else f". It {_other_samples(known, variable)}"
            yield f"variable {name} {_other_meaning(*meanings)}{more}"
        elif known.kept != variable.kept:
            yield (
                f"variable {name} {_other_samples(known, variable)}. They go on from those that "
                f"are there; {_MIXED} their values mix both, and each raises an alarm that names "
                "them"
            )
        else:
            kept.append(f"variable {name}")


def _other_samples(before: VariableSummary, variable: VariableSummary) -> str:
    return f"keeps other samples: {before.kept} before, {variable.kept} now"


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


def _values(old: ProgramSummary, new: ProgramSummary, kept: list[str]) -> Iterator[str]:
    for name in sorted(old.values.keys() - new.values.keys()):
        yield f"value {name} is gone: its rows stay in the lake"
    for name, stream in new.values.items():
        before = old.values.get(name)
        if before is None:
            yield f"value {name} is new: it is made of the samples that devices have"
        elif before != stream:
            yield (
                f"value {name} is computed again from the samples that are there, and all devices "
                f"send it again; {_MIXED} they do not agree on it: each counts of a device of the "
                "other one what it sent last under its own program, if it did"
            )
        else:
            kept.append(f"value {name}")


def _streams(old: ProgramSummary, new: ProgramSummary, kept: list[str]) -> Iterator[str]:
    for name in filter(_is_users, sorted(old.streams.keys() - new.streams.keys())):
        yield f"stream {name} is gone"
    for name, meaning in new.streams.items():
        if not _is_users(name):
            continue
        if meaning == old.streams.get(name):
            kept.append(f"stream {name}")
            continue
        what = _other_stream(old, new, name)
        if name in new.fleet:
            yield f"stream {name} {what}: {_over_fleet(old, new, name)}"
        elif name not in old.streams:
            yield f"stream {name} {what}: it is made of the readings that each device still has"
        else:
            yield (
                f"stream {name} {what}: each device computes it again from the readings that it "
                "still has, and what is made of it follows"
            )


def _is_users(stream: str) -> bool:
    """Return whether a program names a stream; its scan or window has the name of others."""
    return ": " not in stream


def _other_stream(old: ProgramSummary, new: ProgramSummary, name: str) -> str:
    """Return in which way a stream is another one."""
    if name not in old.streams:
        return "is new"
    had, has = (leaf_of(name) in each.streams for each in (old, new))
    if had and not has:
        return "has no local events any more"
    return "has local events now" if has and not had else "means something else"


def _results(old: ProgramSummary, new: ProgramSummary) -> Iterator[str]:
    for name, made in new.results.items():
        if old.results.get(name, made) != made and name in new.fleet:
            yield f"result {name}: its rows have another id; the former ones are shown no more"
        elif old.results.get(name, made) != made:
            yield f"result {name}: its rows are sent again under another id; the former ones stay"


def _over_fleet(old: ProgramSummary, new: ProgramSummary, name: str) -> str:
    """Return what becomes of a stream over the fleet that is new or means something else."""
    left = {item for each in old.fleet.values() for item in each}
    if left.issuperset(new.fleet[name]):
        return "gateways and lakes make it again of what devices have sent them"
    if name in old.streams and not old.fleet:  # an earlier release noted no more
        return (
            "gateways and lakes make it again of what devices have sent them, if nothing "
            "else leaves devices now; else it begins with the readings of devices from then on"
        )
    return "it begins with the readings that devices take in from then on"


def _acting(old: ProgramSummary, new: ProgramSummary) -> Iterator[str]:
    for name, condition in new.alerts.items():
        if old.alerts.get(name, condition) != condition:
            yield f"alert {name} has another condition: it begins as if it had never turned"
    for name in sorted(old.alerts.keys() - new.alerts.keys()):
        yield f"alert {name} is gone: what it last published stays on its topic until it is cleared"
    for name, made in new.parameters.items():
        if old.parameters.get(name, made) != made:
            yield (
                f"parameter {name} is declared otherwise: entries that are no value of it count "
                "for nothing, and another default is another window"
            )
    for name in sorted(old.parameters.keys() - new.parameters.keys()):
        yield f"parameter {name} is gone: its entries count for nobody"


def changed_texts(old: Plan, new: Plan) -> Iterator[str]:
    """Yield a line for each function whose text is another one under the same version."""
    known: Mapping[str, Any] = {text.name: text for text in texts_of(old)}
    for text in texts_of(new):
        before = known.get(text.name)
        if before is not None and before.digest != text.digest and before.version == text.version:
            yield (
                f"{text.name}: its text is another one under the same version, so what both make "
                f"is added up. Raise {text.remedy} if it means something else"
            )
