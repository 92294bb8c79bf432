"""What a program is made of besides variables: events, windows, folds, and streams.

All are plain, immutable values without functions. A `Program` makes them and a `Plan` holds them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import StrEnum
from math import gcd
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, NoReturn

from lasp_edge.event import Event
from lasp_edge.folds.fold import Fold
from lasp_edge.folds.numbers import PlausibleRange, Resolution
from lasp_edge.generics import Value, Value_co
from lasp_edge.protocol.streams import stream_id
from lasp_edge.variables import Variable

if TYPE_CHECKING:
    from lasp_edge.ordered.sent_rows import RowForm


class Tier(StrEnum):
    """Where a part of a program runs."""

    DEVICE = "device"
    CLOUD = "cloud"


TEXT = "text"
"""In place of the step of a number: a part is a text."""

Key = Callable[[Event[Value]], str | tuple[str | int, ...]]
"""Gives the text by which an event is grouped; or several texts and whole numbers."""

UserHandler = Callable[..., None]
"""A handler of any kind."""


class Shown(NamedTuple):
    """How people are shown an event, value, window or result; it is no part of what that means.

    Attributes:
        title: for people; "" for its name.
        device_class: what Home Assistant calls the quantity; "" where unit and name, or what it is
            made from, tell it.
    """

    title: str = ""
    device_class: str = ""


AS_NAMED = Shown()
"""Nothing is stated."""


@dataclass(frozen=True, slots=True)
class EventType(Generic[Value_co]):
    """A kind of reading: its name, the step of its values and their unit.

    `Program.event` makes it. `EventType[float]` has numbers, `EventType[str]` texts.

    >>> from lasp_edge import Program
    >>> temperature = Program("house").event("temperature", resolution="0.01", unit="°C")
    >>> temperature.name, temperature.resolution, temperature.unit
    ('temperature', Resolution("0.01"), '°C')
    """

    name: str
    resolution: Resolution
    unit: str = ""
    text: bool = False
    """Its readings are texts: streams alone read them."""
    plausible: PlausibleRange | None = None
    """What its readings may be; None where all numbers are plausible."""
    is_unstepped: bool = field(default=False, compare=False)
    """It was declared without a resolution: its readings are rounded to whole numbers."""
    shown: Shown = AS_NAMED
    """How people are shown what is made from it."""
    leave_us: int | None = None
    """How long a reading waits to leave for an order over the fleet; None: an interval."""
    examples: tuple[str, ...] = field(default=(), compare=False)
    """Texts that come, for whoever makes up readings; empty: any."""

    if not TYPE_CHECKING:

        def __add__(self, other: Any) -> NoReturn:
            """Raise an error: events are not added up."""
            names = f"{self.name}, {getattr(other, 'name', other)}"
            raise ValueError(f"several events are united by a list: source=[{names}]")

    @property
    def scale(self) -> Resolution:
        """The step, with the plausible range: it gives whole steps of a reading, or refuses it."""
        return self.plausible or self.resolution


@dataclass(frozen=True, slots=True)
class Parameter(Generic[Value_co]):
    """A value that operators change while the program runs, from a time on.

    `Program.parameter` makes it: a `Parameter[float]`, with choices a `Parameter[str]`.

    >>> from lasp_edge import Program
    >>> limit = Program("house").parameter("limit", "28", resolution="0.1", unit="°C")
    >>> limit.name, limit.default
    ('limit', '28')

    Attributes:
        default: its value where there is no entry, as text.
        resolution: the step of its values; None where it is one of some texts.
        unit: for people, such as "°C".
        choices: the texts that it can be; empty where it is a number.
        plausible: the numbers that it can be; None where all can.
    """

    name: str
    default: str
    resolution: Resolution | None
    unit: str = ""
    choices: tuple[str, ...] = ()
    plausible: PlausibleRange | None = None

    if not TYPE_CHECKING:

        def _has_no_value(self, *_others: Any) -> NoReturn:
            """Raise an error: a parameter is no number where the program is declared."""
            raise ValueError(
                f"parameter {self.name!r} has no value where the program is declared: give it as "
                "it is, in the unit that is needed there, such as seconds; functions ask for its "
                f"value by at[{self.name}]"
            )

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _has_no_value
        __truediv__ = __rtruediv__ = __lt__ = __le__ = __gt__ = __ge__ = _has_no_value

    def __index__(self) -> int:
        """Return the default as a whole number: a set's bound can be a parameter."""
        if self.resolution is None or self.resolution.exact.denominator != 1:
            raise ValueError(
                f"parameter {self.name!r}: a set keeps a whole number of samples, so its "
                'resolution has to be a whole number such as "1"'
            )
        return int(Decimal(self.default))


@dataclass(frozen=True, slots=True)
class WindowControls:
    """The parts of a window that operators can change, and the functions that see parameters.

    Attributes:
        uses: the parameters that `value=`, `where=` and a fold's function may ask for, by name.
        size, slide: the parameter that gives the size or slide; None where it is fixed.
        slides_by_size: the slide is the size.
        fold, value, where: whether a function of the user's gives them.
    """

    uses: tuple[Parameter, ...] = ()
    size: Parameter | None = None
    slide: Parameter | None = None
    slides_by_size: bool = False
    fold: bool = False
    value: bool = False
    where: bool = False

    @property
    def counts(self) -> bool:
        """Whether functions of the user's give the value of a reading, or whether it counts."""
        return self.value or self.where

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters that change it, by name."""
        shape = [each for each in (self.size, self.slide) if each is not None]
        found = {each.name: each for each in (*self.uses, *shape)}
        return tuple(found[name] for name in sorted(found))


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window over an event's readings, by their own time.

    >>> from lasp_edge import Program, folds
    >>> program = Program("weather")
    >>> rain = program.event("rain", resolution="0.1", unit="mm")
    >>> day = program.window("day", source=rain, fold=folds.sum(), size_s=86_400, slide_s=3_600)
    >>> day.size_us // day.slide_us  # each reading is in 24 of them
    24

    Attributes:
        size_us: length of a window.
        slide_us: distance between the starts of two windows.
        keyed: each key has rows of its own; else the only key is "".
        version: of the meaning of its functions.
        stream: signed 64-bit id; panes of different streams never meet. Of a window with
            parameters it is that of the definition, and each stretch of panes has another one.
        tentative_after_us: for how long it waits for devices before it has a row; None for the
            X of its sinks. It is no part of its meaning: each sink may show it when it likes.
        controls: what parameters can change of it, and its functions that see them. Fold, size
            and slide are those of the parameters' defaults (see `lasp_edge.language.regimes`).
    """

    name: str
    source: EventType
    fold: Fold
    size_us: int
    slide_us: int
    keyed: bool
    version: int
    stream: int
    tentative_after_us: int | None = None
    controls: WindowControls = WindowControls()

    runs_on: ClassVar = (Tier.DEVICE, Tier.CLOUD)
    """Devices make its panes, the cloud its rows."""

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), _without_code(self)

    @property
    def is_fixed(self) -> bool:
        """Whether no parameter changes it: all its panes are of one stream, its own."""
        controls = self.controls
        return not controls.uses and controls.size is None and controls.slide is None

    @property
    def is_plain(self) -> bool:
        """Whether each reading counts in it as measured, and no parameter changes it."""
        return self.is_fixed and not self.controls.counts

    @property
    def span_us(self) -> int:
        """Length of a pane, the greatest that no window boundary cuts."""
        return gcd(self.size_us, self.slide_us)

    @property
    def definition(self) -> int:
        """The id of the whole definition: windows of several sizes are made of one stream."""
        return stream_id(self.stream, self.size_us, self.slide_us)

    @property
    def resolution(self) -> Resolution:
        """The step of the values that are folded."""
        return self.source.resolution

    def end_of_last(self, time_us: int) -> int:
        """Return the end of the last window that holds `time_us`."""
        return time_us // self.slide_us * self.slide_us + self.size_us


@dataclass(frozen=True, slots=True)
class LocalFold:
    """A fold over one device's own state of a dynamic variable: one partial a device and key.

    Attributes:
        made_of: the local folds whose partials its own is made of (`lasp_edge.folds.derived`);
            none of one that folds samples.
    """

    name: str
    source: Variable
    fold: Fold
    resolution: Resolution
    stream: int
    made_of: "tuple[LocalFold, ...]" = ()

    runs_on: ClassVar = (Tier.DEVICE,)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), _without_code(self)

    @property
    def keyed(self) -> bool:
        """Whether there is a partial for each key; else the only key is ""."""
        return self.source.keyed

    @property
    def sources(self) -> frozenset[str]:
        """The variables whose samples are in it."""
        inner = {name for each in self.made_of for name in each.sources}
        return frozenset(inner or {self.source.name})


@dataclass(frozen=True, slots=True)
class DynamicFold:
    """The combination of all devices' partials of a local fold, for each key if it has keys.

    Attributes:
        absence: the notes on devices that were silent for longer than `stale_us`, and whose
            entries do not count; None where all devices count.
    """

    name: str
    source: LocalFold
    stream: int
    absence: LocalFold | None = None
    stale_us: int = 0

    runs_on: ClassVar = (Tier.DEVICE, Tier.CLOUD)

    @property
    def fold(self) -> Fold:
        """The fold that made the partials."""
        return self.source.fold

    @property
    def resolution(self) -> Resolution:
        """The step of the values that were folded."""
        return self.source.resolution

    @property
    def keyed(self) -> bool:
        """Whether there is a result for each key; else the only key is ""."""
        return self.source.keyed


AnyFold = LocalFold | DynamicFold


@dataclass(frozen=True, slots=True)
class Stream(Generic[Value_co]):
    """What is made of events or other streams, item by item; `Stream[float]` is one of numbers.

    >>> from lasp_edge import Program, scans
    >>> program = Program("water")
    >>> litres = program.event("litres")
    >>> used = program.scan("used", source=litres, scan=scans.differences(), per_device=True)
    >>> used.name, used.sources
    ('used', ('litres',))

    Attributes:
        operator: "map", "filter", "flat_map", "union", "scan" or one of `halves.HALVES`.
        sources: names of events and streams that it is made from.
        keyed: a scan with a key function.
        resolution: the step of its values, where they are numbers with a step.
        parts: what its values consist of, by name: the step of a number, "text" or "time".
        stateless: neither it nor what it is made from is a scan.
        events: the events that it is made from.
        fingerprint: differs for streams that do not mean the same.
        fleet: it is of one order over the fleet, or made of such a one; no device evaluates it.
        uses: the parameters of a scan's arguments.
        local: the events that stay on their devices.
    """

    name: str
    operator: str
    sources: tuple[str, ...]
    keyed: bool
    resolution: Resolution | None
    parts: tuple[tuple[str, str], ...]
    stateless: bool
    events: tuple[str, ...]
    fingerprint: str
    fleet: bool = False
    uses: tuple[Parameter, ...] = ()
    local: tuple[str, ...] = ()

    @property
    def runs_on(self) -> tuple[Tier, ...]:
        return (Tier.CLOUD,) if self.fleet else (Tier.DEVICE,)


@dataclass(frozen=True, slots=True)
class StreamResult:
    """A stream that leaves: each of its outputs is a row.

    Attributes:
        parts: name -> the step of a number as decimal text, or "text".
        stream: signed 64-bit id of what its rows mean.
        times: the parts that are times, in microseconds since 1970. Each row is a pane.
    """

    name: str
    parts: tuple[tuple[str, str], ...]
    stream: int
    times: frozenset[str] = frozenset()
    span_us: ClassVar = 1
    size_us: ClassVar = 1

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its parts: `<part>_q` of a number in steps, and the part of a text."""
        return tuple(name if step == TEXT else f"{name}_q" for name, step in self.parts)

    @property
    def fold(self) -> "RowForm":
        """The form in which its rows travel."""
        from lasp_edge.ordered.sent_rows import RowForm  # noqa: PLC0415 - of programs with streams

        return RowForm(tuple(step == TEXT for _, step in self.parts))


def _without_code(entry: Window | LocalFold) -> tuple[Any, ...]:
    """Return the fields of an entry as they are pickled: a user's fold leaves its code behind."""
    values = (getattr(entry, field.name) for field in fields(entry))
    return tuple(value.without_code() if isinstance(value, Fold) else value for value in values)
