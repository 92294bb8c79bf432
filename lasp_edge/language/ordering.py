"""Declarations of streams: each function checks one, and adds it to the draft.

Only a program that declares a stream imports this module, and with it the scans.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lasp_edge.folds.numbers import Resolution
from lasp_edge.language.arguments import checked_condition, need_key
from lasp_edge.language.declarations import TEXT, EventType, Parameter, Stream, StreamResult, Window
from lasp_edge.language.draft import Draft
from lasp_edge.language.parameter_scan import ParameterScan
from lasp_edge.language.windowing import known_parameter
from lasp_edge.ordered.scan import TIME, Scan
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.protocol.lake_columns import ROW_IDENTITY, ROW_RECORD
from lasp_edge.protocol.streams import stream_id
from lasp_edge.variables import named

RESERVED = frozenset({"name", *ROW_IDENTITY, *ROW_RECORD})
"""Names that a row of results has already."""
_OF_ONE_DEVICE = (
    "{0}: a scan in one order over the whole fleet takes no parameter, for devices may know an "
    "entry that its evaluator does not; write per_device=True, or let a scan of each device read "
    "the parameter and this one read its outputs"
)
_OF_FLEET = (
    "scan {0!r}: {1!r} is in one order over the whole fleet, which no single device has; leave out "
    "per_device=True"
)


def declare_stream(
    draft: Draft,
    operator: str,
    name: str,
    sources: Any,
    function: Any = None,
    *,
    resolution: str | None = None,
    version: int = 1,
) -> Stream:
    """Declare a map, filter, flat_map or union of events and streams.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    what = f"{operator} {name!r}"
    _need_name(draft, name, operator)
    need_key(None, version, what)
    if operator != "union" and not callable(function):
        raise ValueError(f"{what}: a function is needed, not {function!r}")
    found = _sources(draft, sources, what)
    if operator == "filter":
        function = checked_condition(function, what)
    if operator != "union":
        found = [_one(draft, found, name)]
    step = step_of(found) if operator in {"filter", "union"} else None
    parts = _parts(found) if operator in {"filter", "union"} else ()
    if resolution is not None:
        step, parts = Resolution(resolution), ()
    return _add(draft, Made(operator, name, function, step, parts, version), found)


class ScanArguments(NamedTuple):
    """The arguments of `Program.scan`, as they were given."""

    name: str
    source: Any
    scan: Any
    key: Any
    per_device: bool
    version: int
    local: Any
    uses: tuple[Any, ...]

    @property
    def what(self) -> str:
        """The scan, as an error names it."""
        return f"scan {self.name!r}"


def declare_scan(draft: Draft, given: ScanArguments) -> Stream:
    """Declare a scan.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    what, name, per_device = given.what, given.name, given.per_device
    parameters = _parameters(draft, given)
    scan, found = checked_scan(draft, given, parameters)
    source = _one(draft, found, name, fleet=not per_device)
    try:
        made = scan.at(step_of([source]))
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    parts = tuple(made.parts.items())
    sides = (given.key is not None, not per_device, parameters)
    meaning = Made("scan", name, made, made.resolution, parts, given.version, *sides)
    added = _add(draft, meaning, [source])
    if given.key is not None:
        draft.keys[name] = given.key
    return added


def checked_scan(
    draft: Draft, given: ScanArguments, parameters: tuple[Parameter, ...] = ()
) -> tuple[Scan, list[EventType | Stream]]:
    """Return the scan that was given, and its sources; raises ValueError as `declare_scan`."""
    _need_name(draft, given.name, "scan")
    need_key(given.key, given.version, given.what)
    found = _sources(draft, given.source, given.what)
    scan = _scan(given, parameters, step_of(found))
    _check_synchronised(scan, given.what, per_device=given.per_device)
    _check_sources(draft, given, scan, found)
    return scan, found


def _scan(given: ScanArguments, parameters: tuple[Parameter, ...], step: Resolution | None) -> Scan:
    """Return the scan that was given, by itself or by a function of parameters.

    Raises:
        ValueError: none was.
    """
    scan, what = given.scan, given.what
    if isinstance(scan, type) and issubclass(scan, Scan):
        scan = scan()
    if parameters:
        return ParameterScan(what, scan, parameters, step)
    if not isinstance(scan, Scan):
        raise ValueError(
            f"{what}: a scan such as scans.differences(), or of a class that extends scans.Scan, "
            f"is needed, not {scan!r}; of a function of parameters, name these in uses=(...)"
        )
    if not isinstance(getattr(scan, "name", None), str):
        raise ValueError(f'{what}: name = "..." is needed in class {type(scan).__name__}')
    return scan


def _check_sources(
    draft: Draft, given: ScanArguments, scan: Scan, sources: list[EventType | Stream]
) -> None:
    """Check that a scan can read its sources.

    Raises:
        ValueError: it cannot.
    """
    for each in sources:
        if given.per_device and getattr(each, "fleet", False):
            raise ValueError(_OF_FLEET.format(given.name, each.name))
        for text in _names(draft, each) if scan.of_numbers else ():
            if text in draft.events and draft.events[text].text:
                raise ValueError(
                    f"{given.what}: {scan!r} computes with numbers, and {text!r} is a text; give "
                    f"it program.map({text}, lambda event: float(event.value), "
                    '"numbers", resolution="0.01")'
                )
    seen = sorted({each for one in sources for each in _names(draft, one)})
    for unseen in [each for each in scan.tells_apart if each not in seen]:
        raise ValueError(
            f"{given.what}: {scan!r} asks for {unseen!r}, and its source gives "
            f"{', '.join(seen)} alone{_renamed(draft, unseen)}"
        )


def _renamed(draft: Draft, name: str) -> str:
    """Return what to write where a stream was asked for whose events keep their sources' names."""
    stream = draft.streams.get(name)
    if stream is None or set(_names(draft, stream)) == {name}:
        return ""
    return (
        f"; events of {name!r} keep the names of its sources: write "
        f'program.map({name}, lambda event: event.value, "NEW_NAME", resolution=..), and give that '
        "one to both"
    )


def _parameters(draft: Draft, given: ScanArguments) -> tuple[Parameter, ...]:
    """Return the parameters of a scan's arguments, by name.

    Raises:
        ValueError: the program has no such parameter, or a scan over the fleet uses some.
    """
    known = [known_parameter(draft, each, given.what) for each in given.uses]
    if known and not given.per_device:
        raise ValueError(_OF_ONE_DEVICE.format(given.what))
    return tuple(sorted(set(known), key=lambda each: each.name))


def _check_synchronised(scan: Scan, what: str, *, per_device: bool) -> None:
    """Check a scan's declaration of the order across devices.

    Raises:
        ValueError: it cannot be used so.
    """
    if not isinstance(scan, Synchronised):
        return
    if per_device:
        raise ValueError(
            f"{what}: {scan!r} is about the order across devices; leave out per_device=True"
        )
    try:
        scan.check()
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def declare_result(draft: Draft, stream: Any, parts: Mapping[str, str] | None) -> Stream:
    """Let a stream leave; its arguments are those of `Program.result`.

    Raises:
        ValueError: something does not fit; nothing is declared then.
    """
    found = known_stream(draft, stream, "result")
    what = f"result {found.name!r}"
    if found.name in draft.stream_results:
        raise ValueError(f"{what}: it is a result already")
    given = found.parts if parts is None else tuple(parts.items())
    if not given and found.resolution is not None:
        given = (("value", found.resolution.text),)
    if not given:
        raise ValueError(
            f"{what}: say what its values consist of, such as "
            f'result({found.name}, parts={{"count": "1", "word": "text"}})'
        )
    for part, step in given:
        if not str(part).isidentifier() or part in RESERVED:
            why = "rows have such a column" if part in RESERVED else "it is no plain name"
            raise ValueError(f"{what}: {part!r} cannot name a part: {why}")
        if step not in {TEXT, TIME}:
            Resolution(step)
    times = frozenset(part for part, step in given if step == TIME)
    given = tuple((part, "1" if part in times else step) for part, step in given)
    meaning = (draft.name, "result", found.name, found.fingerprint, given)
    made = StreamResult(found.name, given, stream_id(*meaning), times)
    _check_parts(made, draft.stream_results.values())
    draft.stream_results[found.name] = made
    return found


def _check_parts(made: StreamResult, others: Iterable[StreamResult]) -> None:
    """Check that all results can stand in one table: a column is a text or a number.

    Raises:
        ValueError: a column's name stands for something else.
    """
    seen = dict.fromkeys(RESERVED, ("", ""))
    for result in (*others, made):
        own: set[str] = set()
        for column, (part, step) in zip(result.columns, result.parts, strict=True):
            what = (column, TEXT if step == TEXT else "number")
            shown = {part.casefold(), column.casefold()}
            if shown & own or seen.setdefault(column.casefold(), what) != what:
                raise ValueError(
                    f"result {made.name!r}: part {part!r} would be the column {column!r}, which is "
                    "taken; give the part another name"
                )
            own |= shown


def known_stream(draft: Draft, stream: Any, what: str) -> Stream:
    """Return a declared stream, given itself or its name.

    Raises:
        ValueError: the program declares no such stream.
    """
    name = stream.name if isinstance(stream, Stream) else stream
    known = draft.streams.get(name) if isinstance(name, str) else None
    if known is None or (isinstance(stream, Stream) and known is not stream):
        shown, hint = getattr(stream, "name", stream), ""
        if isinstance(stream, Window):
            hint = ", which is a window: its rows are kept as they are"
        if isinstance(stream, EventType):
            hint = ', which is an event; write program.map(EVENT, lambda event: .., "name")'
        raise ValueError(f"{what}: program {draft.name!r} declares no stream {shown!r}{hint}")
    return known


def _need_name(draft: Draft, name: str, operator: str) -> None:
    if draft.is_taken(named(name, "stream")):
        raise ValueError(f"{operator}: the name {name!r} is taken")


def _sources(draft: Draft, sources: Any, what: str) -> list[EventType | Stream]:
    several = sources if isinstance(sources, list | tuple) else [sources]
    if not several:
        raise ValueError(f"{what}: at least one event or stream is needed")
    found: list[EventType | Stream] = []
    for source in several:
        name = getattr(source, "name", source)
        if isinstance(source, Stream) or (isinstance(name, str) and name in draft.streams):
            found.append(known_stream(draft, source, what))
        elif isinstance(source, EventType | Window | str):
            found.append(draft.event(source))
        else:
            raise ValueError(f"{what}: an event or a stream is needed, not {source!r}")
    return found


def _names(draft: Draft, source: EventType | Stream) -> Iterator[str]:
    """Yield the names that the items of a source can have."""
    if isinstance(source, EventType) or source.operator not in {"filter", "union"}:
        yield source.name
        return
    for name in source.sources:
        yield from _names(draft, draft.streams.get(name) or draft.events[name])


def _one(
    draft: Draft, sources: list[EventType | Stream], name: str, *, fleet: bool = False
) -> EventType | Stream:
    """Return the only source, or the union of several, which has a name of its own."""
    if len(sources) == 1:
        return sources[0]
    step, parts = step_of(sources), _parts(sources)
    made = Made("union", f"{name}: sources", None, step, parts, fleet=fleet)
    return _add(draft, made, sources)


class Made(NamedTuple):
    """How a stream is made of its sources."""

    operator: str
    name: str
    function: Any
    resolution: Resolution | None
    parts: tuple[tuple[str, str], ...]
    version: int = 1
    keyed: bool = False
    fleet: bool = False
    uses: tuple[Parameter, ...] = ()


def _add(draft: Draft, made: Made, sources: list[EventType | Stream]) -> Stream:
    operator, name, function, resolution, parts, version, keyed, fleet, uses = made
    fleet = fleet or any(getattr(source, "fleet", False) for source in sources)
    events = [event for each in sources for event in getattr(each, "events", (each.name,))]
    scan = function.fingerprint if isinstance(function, Scan) else ""
    step = resolution.canonical if resolution else ""
    meaning: list[Any] = [operator, name, version, scan, step, keyed]
    if operator == "scan" and fleet:
        meaning.append("fleet")
    stream = Stream(
        name,
        operator,
        tuple(source.name for source in sources),
        keyed=keyed,
        resolution=resolution,
        parts=parts,
        stateless=operator != "scan" and all(getattr(s, "stateless", True) for s in sources),
        events=tuple(dict.fromkeys(events)),
        fingerprint=json.dumps([*meaning, *(fingerprint_of(draft, made, s) for s in sources)]),
        fleet=fleet,
        uses=uses,
    )
    draft.streams[name] = stream
    if function is not None:
        draft.stream_functions[name] = function
    return stream


def fingerprint_of(draft: Draft, made: Made, source: EventType | Stream) -> Any:
    """Return the meaning of a source as a part of the meaning of what is made of it."""
    if isinstance(source, EventType):
        return [source.name, source.resolution.canonical, source.text]
    found = json.loads(source.fingerprint)
    # Once a function behind a map saw the value before it was rounded. The ids of what is made
    # from such a function differ from those of that time, and all others are what they were.
    return [*found, "rounded"] if made.operator != "union" and _rounds(draft, source) else found


def _rounds(draft: Draft, source: EventType | Stream) -> bool:
    """Return whether values of a stream come rounded from a map, by no other function."""
    if isinstance(source, EventType):
        return False
    if source.operator == "union":
        known = [draft.streams[name] for name in source.sources if name in draft.streams]
        return any(_rounds(draft, each) for each in known)
    return source.operator in {"map", "flat_map"} and source.resolution is not None


def step_of(sources: list[EventType | Stream]) -> Resolution | None:
    """Return the step of the values of all sources; None where they have no single one."""
    steps = {
        None if isinstance(each, EventType) and each.text else each.resolution for each in sources
    }
    return steps.pop() if len(steps) == 1 else None


def _parts(sources: list[EventType | Stream]) -> tuple[tuple[str, str], ...]:
    several = {
        (("value", TEXT if each.text else each.resolution.text),)
        if isinstance(each, EventType)
        else each.parts
        for each in sources
    }
    return several.pop() if len(several) == 1 else ()
