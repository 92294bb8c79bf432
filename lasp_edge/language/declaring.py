"""What a program derives: sets from shared sets, and streams from events.

`map`, `filter` and `union` have one name for both: given a variable they make a set, given an event
or a stream they make a stream.

    >>> from lasp_edge import Program, folds, scans
    >>> program = Program("water")
    >>> litres = program.event("litres", resolution="1")
    >>> used = program.scan(
    ...     "used", source=litres, scan=scans.differences(reset=True), per_device=True
    ... )
    >>> window = program.window("by_hour", source=used, fold=folds.sum(), size_s=3600)
    >>> program.result(used).name, sorted(program.plan().streams)
    ('used', ['used'])
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from crdts import DerivedSet
from lasp_edge.event import Event
from lasp_edge.generics import Image, Value
from lasp_edge.language.acting import Folded, FoldValue
from lasp_edge.language.arguments import need_function, several, shown
from lasp_edge.language.declarations import EventType, Key, Parameter, Stream, Window
from lasp_edge.language.derived_sets import DerivedSets
from lasp_edge.language.signatures import (
    Decorator,
    Handler,
    Number,
    ScanOf,
    SetVariable,
    Source,
)
from lasp_edge.variables import Variable

if TYPE_CHECKING:
    from lasp_edge.language.streaming import StreamRow
    from lasp_edge.ordered.scan import Scan


class Declaring(DerivedSets):
    """The methods of a program that derive streams, and what can be sets or streams."""

    @overload
    def map(
        self, source: SetVariable, function: Callable[[Any], Any], name: str, *, version: int = 1
    ) -> Variable[DerivedSet]: ...
    @overload
    def map(
        self,
        source: Source[Value],
        function: Callable[[Event[Value]], Image],
        name: str,
        *,
        resolution: str | None = None,
        version: int = 1,
    ) -> Stream[Image]: ...
    def map(
        self,
        source: SetVariable | Source[Any],
        function: Callable[[Any], Any],
        name: str,
        *,
        resolution: str | None = None,
        version: int = 1,
    ) -> Any:
        """Derive the images of a set's elements, or of a stream's events, on each device.

        >>> from lasp_edge import Program
        >>> program = Program("house")
        >>> watts = program.event("watts", resolution="1")
        >>> program.map(watts, lambda event: event.value / 1000, "kW", resolution="0.001").name
        'kW'

        Args:
            source: a shared set (`ORSet`, `GSet`, `TwoPSet`; of an `ORMap` the keys), or one that
                is derived from such; or an event or stream.
            function: gives an element's image, or an event's new value, and depends on nothing
                else. One for which it fails has no image, and is counted.
            name: a new name.
            resolution: of a stream, the step of its values as decimal text: windows need it.
            version: raise it when the meaning of `function` changes.
        """
        if self._is_stream(source):
            return self._stream("map", name, source, function, resolution, version)
        if resolution is not None:
            raise ValueError(f"map {name!r}: resolution= is for events and streams")
        return self._derived_sets().derive(name, "map", (source,), function, version)

    @overload
    def filter(
        self, source: SetVariable, predicate: Callable[[Any], bool], name: str, *, version: int = 1
    ) -> Variable[DerivedSet]: ...
    @overload
    def filter(
        self,
        source: Source[Value],
        predicate: Callable[[Event[Value]], bool],
        name: str,
        *,
        version: int = 1,
    ) -> Stream[Value]: ...
    def filter(
        self,
        source: SetVariable | Source[Any],
        predicate: Callable[[Any], Any],
        name: str,
        *,
        version: int = 1,
    ) -> Any:
        """Derive those for which `predicate` holds. Arguments as for `map`.

        >>> from lasp_edge import Program
        >>> program = Program("laundry")
        >>> power = program.event("power", resolution="1", unit="W")
        >>> program.filter(power, lambda event: event.value > 5, "running").name
        'running'
        """
        if self._is_stream(source):
            return self._stream("filter", name, source, predicate, None, version)
        return self._derived_sets().derive(name, "filter", (source,), predicate, version)

    def flat_map(
        self,
        source: Source[Value],
        function: Callable[[Event[Value]], Iterable[Image]],
        name: str,
        *,
        resolution: str | None = None,
        version: int = 1,
    ) -> Stream[Image]:
        """Derive any number of events of each: `function` gives a list of values, in their order.

        Arguments as for `map` of a stream.

        >>> from lasp_edge import Program
        >>> program = Program("words")
        >>> line = program.event("line", text=True)
        >>> program.flat_map(line, lambda event: event.value.split(), "words").name
        'words'
        """
        return self._stream("flat_map", name, source, function, resolution, version)

    @overload
    def union(
        self, first: SetVariable, /, *sources: SetVariable | str, name: str | None = None
    ) -> Variable[DerivedSet]: ...
    @overload
    def union(
        self,
        first: EventType[Value] | Stream[Value],
        /,
        *sources: EventType[Value] | Stream[Value] | str,
        name: str | None = None,
    ) -> Stream[Value]: ...
    @overload
    def union(self, first: str, /, *sources: Any, name: str | None = None) -> Any: ...
    def union(self, *sources: Any, name: str | None = None) -> Any:
        """Derive what is in any of some sets or streams, of two and more.

        >>> from lasp_edge import Program
        >>> program = Program("house")
        >>> rooms = [program.event(name, resolution="0.1") for name in ("kitchen", "attic")]
        >>> program.union(*rooms, "rooms").name
        'rooms'

        Args:
            *sources: as for `map`; where `name` is left out, the last one is the new name.
            name: a new name.
        """
        if name is None:
            *sources, name = sources or ("",)  # type: ignore[assignment]
        if not isinstance(name, str) or len(sources) < 2:  # noqa: PLR2004 - of two and more
            raise ValueError(
                "union: two sources and a new name are needed, as in "
                'union(left, right, "both"), with as many sources as there are'
            )
        if any(self._is_stream(source) for source in sources):
            return self._stream("union", name, list(sources), None, None, 1)
        made, derived = sources[0], self._derived_sets()
        for number, source in enumerate(sources[1:], 1):
            step = name if number == len(sources) - 1 else f"{name}: {number}"
            made = derived.derive(step, "union", (made, source), None, 1)
        return made

    def scan(
        self,
        name: str,
        *,
        source: Source[Value],
        scan: "Scan[Image] | type[Scan[Image]] | ScanOf[Image]",
        key: Key[Value] | None = None,
        per_device: bool = False,
        version: int = 1,
        local: Source[Any] | Literal[True] | None = None,
        uses: Iterable[Parameter] = (),
    ) -> Stream[Image]:
        """Derive the outputs of a scan over events in the order of their own times.

        A late event is put in its place, and the outputs after it are revised.

        >>> from lasp_edge import Program, scans
        >>> program = Program("water")
        >>> litres = program.event("litres")
        >>> program.scan("used", source=litres, scan=scans.differences(), per_device=True).parts
        (('difference', '1'),)

        Args:
            name: a new name.
            source: an event or stream; a list of several is their union.
            scan: a scan such as `scans.differences()`. A function of parameters,
                `lambda at: scans.sessions(gap_s=at[gap])`, gives the scan that steps an event by
                their values at the event's time.
            key: gives the text by which events are grouped; each key is scanned by itself.
            per_device: each device scans what it reads itself; else the readings of all devices
                are in one order, which gateways evaluate.
            version: raise it when the meaning of a function of the scan, or of `key`, changes.
            local: of a `scans.Synchronised`, the events that stay on their devices: one, several,
                or True for as many as may. It changes what is sent, and no row.
            uses: the parameters that the function of a scan of each device asks for.
        """
        from lasp_edge.language.ordering import ScanArguments, declare_scan  # noqa: PLC0415

        args = (
            name,
            source,
            scan,
            key,
            per_device,
            version,
            local,
            several(uses, f"scan {name!r}: uses="),
        )
        given = ScanArguments(*args)
        if local is None:
            return declare_scan(self._draft, given)
        from lasp_edge.language.parting import declare_parted  # noqa: PLC0415 - few need it

        return declare_parted(self._draft, given)

    def result(
        self, stream: Stream[Value] | str, *, parts: Mapping[str, str] | None = None
    ) -> Stream[Value]:
        """Let a stream leave: each of its events is a row, tentative, final or revised.

        >>> from lasp_edge import Program
        >>> program = Program("house")
        >>> doubled = program.map(program.event("a"), lambda event: event.value * 2, "doubled")
        >>> program.result(doubled, parts={"twice": "1"}).name
        'doubled'

        Args:
            stream: the stream, or its name.
            parts: what its values consist of, by name: the step of a number as decimal text,
                "text", or "time" for whole microseconds since 1970. A value of several parts is a
                tuple. Built-in scans know their parts.
        """
        from lasp_edge.language.ordering import declare_result  # noqa: PLC0415 - see there

        return declare_result(self._draft, stream, parts)

    def show(
        self,
        value: Variable | Window | Stream | str,
        *,
        title: str = "",
        device_class: str = "",
    ) -> None:
        """State how people are shown a value; it changes nothing of what the value means.

        >>> from lasp_edge import Program, folds
        >>> program = Program("flats")
        >>> power = program.event("power", resolution="1", unit="W")
        >>> mean = program.window("mean", source=power, fold=folds.mean(), size_s=900)
        >>> program.show(mean, title="Average power")

        Args:
            value: the target of a `fold` or `fold_dynamic`, a window or a result, or its name.
            title: its name for people, such as in Home Assistant.
            device_class: what Home Assistant calls the quantity, such as "energy"; where it is
                left out, that of what the value is made from.

        Raises:
            ValueError: there is no such value, or no such class.
        """
        draft, name = self._draft, getattr(value, "name", value)
        if name not in {*draft.local, *draft.dynamic, *draft.windows, *draft.stream_results}:
            raise ValueError(f"show: a fold's target, a window or a result is needed, not {name!r}")
        self._draft.shown[name] = shown(f"show {name!r}", title, device_class)

    def on_result(self, stream: Stream | str) -> "Decorator[StreamRow]":
        """Decorate a handler `(row, update)` that runs for each row of a result once it is final.

        It runs again for a row that is revised. What it does beside `update` may be repeated by a
        crash, so it should be right when it is done again, such as adding to a set.

        >>> from lasp_edge import Program
        >>> program = Program("house")
        >>> a = program.event("a")
        >>> doubled = program.map(a, lambda event: 2 * event.value, "b", resolution="1")
        >>> @program.on_result(program.result(doubled))
        ... def came(row, update):
        ...     print(row.parts["value"], row.status)
        """
        from lasp_edge.language.ordering import known_stream  # noqa: PLC0415 - see there

        draft, found = self._draft, known_stream(self._draft, stream, "on_result")
        name = found.name
        if found.fleet:
            raise ValueError(
                f"on_result: {name!r} is in one order over the whole fleet, so no device has its "
                "rows; a gateway prints and publishes them"
            )
        if name not in draft.stream_results:
            raise ValueError(f"on_result: write program.result({name}) first")

        def register(handler: "Handler[StreamRow]") -> "Handler[StreamRow]":
            need_function(handler, "on_result", "(row, update)")
            draft.result_handlers.setdefault(name, []).append(handler)
            return handler

        return register

    def _is_stream(self, source: Any) -> bool:
        named = isinstance(source, str) and source in {*self._draft.events, *self._draft.streams}
        return named or isinstance(source, EventType | Stream | list | tuple)

    def _stream(
        self,
        operator: str,
        name: str,
        source: Any,
        function: Any,
        resolution: str | None,
        version: int,
    ) -> Stream:
        from lasp_edge.language.ordering import declare_stream  # noqa: PLC0415 - see there

        return declare_stream(
            self._draft, operator, name, source, function, resolution=resolution, version=version
        )

    @overload
    def combine(
        self,
        name: str,
        function: Callable[[Any, Any], Number],
        first: Folded,
        second: Folded,
        /,
        *,
        resolution: str,
        version: int = 1,
    ) -> Variable[FoldValue]: ...
    @overload
    def combine(
        self,
        name: str,
        function: Callable[..., Number],
        *values: Folded,
        resolution: str,
        version: int = 1,
    ) -> Variable[FoldValue]: ...
    def combine(
        self,
        name: str,
        function: Callable[..., Any],
        *values: Folded,
        resolution: str,
        version: int = 1,
    ) -> Variable[FoldValue]:
        """Derive a value from other values, such as the spread between two of the fleet.

        >>> from crdts import BoundedLWWSet
        >>> from lasp_edge import Program, folds
        >>> program = Program("house")
        >>> last = program.declare_dynamic(BoundedLWWSet(bound=10), "last")
        >>> warm = program.fold_dynamic(program.fold(last, folds.max(), "max_here"), "warm")
        >>> cold = program.fold_dynamic(program.fold(last, folds.min(), "min_here"), "cold")
        >>> program.combine("spread", lambda warm, cold: warm - cold, warm, cold, resolution="0.1")
        the variable 'spread'

        Args:
            name: a new name.
            function: gives the value of the others, in their order: each a number, or all its
                parts by name where it has several. Where one has no sample, or the function
                divides by zero, there is no value.
            *values: targets of `fold_dynamic`, or of `fold` for a value of each device.
            resolution: the step to which the value is rounded, as decimal text.
            version: raise it when the meaning of `function` changes.
        """
        from lasp_edge.language.combining import combine_values  # noqa: PLC0415 - few use it

        return combine_values(self._draft, name, function, values, resolution, version)
