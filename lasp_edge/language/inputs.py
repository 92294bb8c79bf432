"""What a program reads and keeps: events, parameters, and variables of samples or shared state."""

from collections.abc import Iterable
from typing import Any, Literal, overload

from crdts import BoundedLWWSet
from lasp_edge.folds.numbers import Resolution, plausible_range
from lasp_edge.generics import State
from lasp_edge.language.arguments import leaving_us, need_examples, need_key, several, shown
from lasp_edge.language.declarations import EventType, Key, Parameter
from lasp_edge.language.draft import Draft
from lasp_edge.variables import Variable, named


class Inputs:
    """The methods of a program that declare events, parameters and variables."""

    _draft: Draft

    @overload
    def event(
        self,
        name: str,
        *,
        resolution: str | None = None,
        unit: str = "",
        text: Literal[False] = False,
        least: float | str | None = None,
        most: float | str | None = None,
        title: str = "",
        device_class: str = "",
        leave_s: float | None = None,
    ) -> EventType[float]: ...
    @overload
    def event(
        self,
        name: str,
        *,
        text: Literal[True],
        title: str = "",
        device_class: str = "",
        leave_s: float | None = None,
        examples: Iterable[str] = (),
    ) -> EventType[str]: ...
    def event(  # noqa: PLR0913 - what there is to say of a reading
        self,
        name: str,
        *,
        resolution: str | None = None,
        unit: str = "",
        text: bool = False,
        least: float | str | None = None,
        most: float | str | None = None,
        title: str = "",
        device_class: str = "",
        leave_s: float | None = None,
        examples: Iterable[str] = (),
    ) -> EventType[Any]:
        """Declare a kind of reading.

        >>> from lasp_edge import Program
        >>> program = Program("house")
        >>> program.event("temperature", resolution="0.1", unit="°C", least=-40, most=60).unit
        '°C'
        >>> program.event("order", text=True, examples=["tea;2", "soup;1"]).text
        True

        Args:
            name: what sources call it.
            resolution: the step of its values as decimal text; readings are rounded to it once,
                without one to whole numbers.
            unit: for people, such as "°C".
            text: its readings are texts, which streams and handlers can read.
            least: the least plausible reading, such as -40; one below it is refused and counted.
            most: the greatest plausible reading.
            title: for people: in Home Assistant the names of values made from it begin with it.
            device_class: what Home Assistant calls the quantity, such as "wind_speed"; where it is
                left out, unit and name tell it if they can.
            leave_s: seconds within which a reading leaves its device for a scan over the fleet,
                0.1 to 3,600; where it is left out, the agent's `--interval`.
            examples: texts that come: `check`, `simulate` and drawn readings then have these alone.
                Where it is left out, they make some up, which the functions may not expect.

        Raises:
            ValueError: the name is taken, or a number is not what it has to be.
        """
        if named(name, "event") in self._draft.events:
            raise ValueError(f"event {name!r} is declared twice")
        if name in self._draft.streams:
            raise ValueError(f"event {name!r}: the name is taken by a stream")
        step = Resolution("1" if resolution is None else resolution)
        plausible = plausible_range(f"event {name!r}", None if text else step, least, most)
        is_unstepped = resolution is None and not text
        people = shown(f"event {name!r}", title, device_class, unit)
        leave_us = None if leave_s is None else leaving_us(f"event {name!r}", leave_s)
        texts = bool(text)
        come = need_examples(f"event {name!r}", examples, texts)
        made = EventType(name, step, unit, texts, plausible, is_unstepped, people, leave_us, come)
        self._draft.events[name] = made
        return made

    @overload
    def parameter(
        self,
        name: str,
        default: str,
        *,
        resolution: str = "1",
        unit: str = "",
        least: float | str | None = None,
        most: float | str | None = None,
    ) -> Parameter[float]: ...
    @overload
    def parameter(
        self, name: str, default: str, *, choices: Iterable[str], unit: str = ""
    ) -> Parameter[str]: ...
    def parameter(
        self,
        name: str,
        default: str,
        *,
        resolution: str = "1",
        unit: str = "",
        choices: Iterable[str] = (),
        least: float | str | None = None,
        most: float | str | None = None,
    ) -> Parameter[Any]:
        """Declare what operators can change while the program runs (`lasp-edge set`).

        >>> from lasp_edge import Program
        >>> program = Program("house")
        >>> program.parameter("limit", "28", resolution="0.5", unit="°C").default
        '28'
        >>> program.parameter("mode", "day", choices=("day", "night")).choices
        ('day', 'night')

        Args:
            name: unique among the parameters.
            default: its value where there is no entry, as text such as "28.5".
            resolution: the step of its values as decimal text.
            unit: for people, such as "°C".
            choices: the texts that it can be, where it is no number.
            least: the least number that it can be.
            most: the greatest number that it can be.

        Raises:
            ValueError: the name is taken, or the default is no value of it.
        """
        from lasp_edge.language.parameters import declare_parameter  # noqa: PLC0415 - rare

        texts = several(choices, f"parameter {name!r}: choices=")
        step = None if texts else Resolution(resolution)
        plausible = plausible_range(f"parameter {name!r}", step, least, most)
        return declare_parameter(
            self._draft, Parameter(name, default, step, unit, texts, plausible)
        )

    def declare(
        self, bottom: State, name: str, *, measures: EventType | str | None = None
    ) -> Variable[State]:
        """Declare a variable that the whole fleet shares: every device's updates are joined.

        Declaring the same variable again returns it.

        >>> from crdts import Counter
        >>> from lasp_edge import Program
        >>> Program("doors").declare(Counter(), "openings")
        the variable 'openings'

        Args:
            bottom: the value it starts with, such as `Counter()`.
            name: unique in the program.
            measures: the event whose resolution the values of a `BoundedLWWSet` have; needed where
                events have different resolutions and the variable does not collect one.

        Raises:
            ValueError: the name stands for something else already.
        """
        return self._draft.declare(Variable(name, bottom, dynamic=False), measures)

    def declare_dynamic(
        self,
        bottom: State,
        name: str,
        *,
        measures: EventType | str | None = None,
        key: Key[float] | None = None,
        version: int = 1,
    ) -> Variable[State]:
        """Declare a variable that each device has for itself; it is never joined over devices.

        >>> from crdts import BoundedLWWSet
        >>> from lasp_edge import Program
        >>> last_ten = BoundedLWWSet(bound=10, max_age_s=3600)
        >>> Program("house").declare_dynamic(last_ten, "last", key=lambda event: event.tags["room"])
        the variable 'last'

        Args:
            bottom: the value it starts with, such as `BoundedLWWSet(bound=100)`.
            name: unique in the program.
            measures: as for `declare`.
            key: gives the text by which readings are grouped: each key has a set of its own, which
                folds and dynamic folds follow. A key comes with its first sample, and goes when
                its samples have become too old.
            version: raise it when the meaning of `key` changes.

        Raises:
            ValueError: as for `declare`, or what has keys is not a `BoundedLWWSet`.
        """
        need_key(key, version, f"declare {name!r}")
        if key is not None and not isinstance(bottom, BoundedLWWSet):
            raise ValueError(f"declare {name!r}: key= is for a BoundedLWWSet, not {bottom!r}")
        made = Variable(name, bottom, dynamic=True, version=version)
        return self._draft.declare(made, measures, key)

    def collect(
        self, source: EventType[float] | str, *, into: Variable[BoundedLWWSet]
    ) -> Variable[BoundedLWWSet]:
        """Add every accepted reading of an event to a dynamic set, without a handler.

        It means the same as a handler with `update(into, BoundedLWWSet.add, event.value,
        event.time_us)` that runs before all others, and costs no Python function a reading.

        >>> from crdts import BoundedLWWSet
        >>> from lasp_edge import Program
        >>> program = Program("house")
        >>> temperature = program.event("temperature", resolution="0.1")
        >>> samples = program.declare_dynamic(BoundedLWWSet(bound=10), "samples")
        >>> program.collect(temperature, into=samples)
        the variable 'samples'
        """
        event, variable = self._draft.event(source), self._draft.variable(into)
        if event.text:
            raise ValueError(f"collect: the readings of {event.name!r} are texts")
        if not variable.dynamic or not isinstance(variable.bottom, BoundedLWWSet):
            raise ValueError(f"collect: {variable.name!r} must be a dynamic BoundedLWWSet variable")
        measured = self._draft.events.get(variable.measures or "")
        if measured is not None and measured.resolution != event.resolution:
            raise ValueError(
                f"collect: {variable.name!r} measures {measured.name!r}, whose resolution "
                f"is not that of {event.name!r}"
            )
        known = self._draft.collections.setdefault(event.name, [])
        if variable not in known:
            known.append(variable)
        return variable
