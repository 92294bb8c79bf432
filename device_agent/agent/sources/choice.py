"""The table of sources: from `--source KIND:PLACE`, and the options beside it, to a source.

A package of somebody else's adds a kind by an entry point in the group `lasp_edge.sources`: the
kind's name, and a module with a `KIND` of type `SourceKind`. It is imported only where a source of
this kind is asked for. Its options stand in a configuration file.
"""

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from device_agent.agent.sources.mapping_options import (
    MAPPING_OPTIONS,
    REPLAY_OPTIONS,
    TOPIC_OPTIONS,
    WITH_TAG,
)
from device_agent.agent.sources.nearest import nearest
from device_agent.agent.sources.periods import EVERY, NAMES, ONLY
from device_agent.agent.sources.source import Option, Source, SourceContext, SourceKind

GROUP = "lasp_edge.sources"


def _later(module: str) -> Callable[[str, str, SourceContext], Source]:
    """Return what makes a source of a module that is imported only then: an agent needs few."""

    def make(name: str, place: str, context: SourceContext) -> Source:
        made: Source = import_module(f"device_agent.agent.sources.{module}").make(
            name, place, context
        )
        return made

    return make


_SENSOR_OPTIONS = (EVERY, WITH_TAG, ONLY, NAMES)
KINDS: tuple[SourceKind, ...] = (
    SourceKind("host", "", _later("host"), (EVERY, WITH_TAG)),
    SourceKind("jsonl", "PATH[.gz]", _later("jsonl_file"), REPLAY_OPTIONS, "file"),
    SourceKind("csv", "PATH[.gz]", _later("csv_file"), REPLAY_OPTIONS, "file"),
    SourceKind("mqtt", "TOPIC", _later("mqtt_topic"), TOPIC_OPTIONS, "topic"),
    SourceKind("stdin", "", _later("stdin_lines"), MAPPING_OPTIONS),
    SourceKind("hwmon", "", _later("hwmon"), _SENSOR_OPTIONS),
    SourceKind("iio", "", _later("iio"), _SENSOR_OPTIONS),
    SourceKind("onewire", "", _later("onewire"), _SENSOR_OPTIONS),
)
"""Every kind of source of ours; a new one is its file and its place in this row."""


class BrokenSourceError(Exception):
    """Somebody else's source raised something where it was imported or made."""


class SourceSpec(NamedTuple):
    """A source that is asked for.

    Attributes:
        kind: the name of its kind.
        place: where it reads from; empty for a kind that needs no place.
        name: under which its cursor is kept.
        options: those of it alone.
        found_at: where a person finds it, such as `fleet.toml line 7`.
    """

    kind: str
    place: str
    name: str
    options: dict[str, Any]
    found_at: str


def spec_of(text: str) -> SourceSpec:
    """Return the source that a text such as `host` or `csv:PATH` names; it is the source's name."""
    kind, _, place = text.partition(":")
    return SourceSpec(kind, place, text, {}, f"--source {text}")


def source_from_spec(text: str, context: SourceContext) -> Source:
    """Return the source that a text such as `host` or `csv:PATH` names.

    Raises:
        ValueError: the text, or an option beside it, cannot work.
        BrokenSourceError: see `source_of`.
    """
    return source_of(spec_of(text), context)


def source_of(spec: SourceSpec, context: SourceContext) -> Source:
    """Return a source.

    Raises:
        ValueError: it cannot work as it is asked for.
        BrokenSourceError: it is somebody else's, and broken.
    """
    kind = kind_of(spec.kind)
    if kind is None:
        raise ValueError(no_kind(spec.kind, spec.name))
    if bool(spec.place) != bool(kind.place) or (":" in spec.name and not kind.place):
        raise ValueError(f"--source is {forms()}, not {spec.name!r}: it is {kind.form}")
    if kind in KINDS:
        return kind.make(spec.name, spec.place, context)
    try:
        made = kind.make(spec.name, spec.place, context)
        if type(made.name) is not str or not callable(made.poll):
            raise TypeError("what it makes is not a Source")  # noqa: TRY301
    except ValueError:
        raise
    except BaseException as error:
        raise _broken(spec.kind, error) from error
    return made


def kind_of(name: str) -> SourceKind | None:
    """Return the kind of this name; None where nobody has one.

    Raises:
        BrokenSourceError: somebody has, and it cannot be imported.
    """
    known = next((kind for kind in KINDS if kind.name == name), None)
    module = None if known or not name else _others().get(name)
    if module is None:
        return known
    try:
        kind = import_module(module).KIND
    except BaseException as error:
        raise _broken(name, error) from error
    if not isinstance(kind, SourceKind):
        raise _broken(name, TypeError(f"{module}.KIND is not a SourceKind"))
    return kind


def no_kind(name: str, given: str) -> str:
    """Return that there is no such kind, which there are, and the nearest."""
    names = kinds()
    near = f"; did you mean mqtt:{given}?" if "/" in name else ""
    meant = nearest(name, names) if name and name not in names and not near else ""
    near = f'; did you mean "{meant}"?' if meant else near
    return f"--source is {forms()}, not {given!r}{near}"


def kinds() -> list[str]:
    """Return the names of all kinds of sources."""
    return [*(kind.name for kind in KINDS), *_others()]


def forms() -> str:
    """Return how each kind of source is written."""
    others = [f"{name}:..." for name in _others()]
    *first, last = [*(kind.form for kind in KINDS), *others]
    return f"{', '.join(first)} or {last}"


def _others() -> dict[str, str]:
    """Return the kinds of others: name -> module."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - 4 MiB that most do without

    return {point.name: point.value for point in entry_points(group=GROUP)}


def _broken(name: str, error: BaseException) -> BrokenSourceError:
    from lasp_edge.errors import pass_interrupt  # noqa: PLC0415
    from lasp_edge.reasons import reason_of  # noqa: PLC0415 - only after a mistake

    pass_interrupt(error)
    return BrokenSourceError(f"the kind {name!r} of source is broken: {reason_of(error)}")


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `--source` and the options of all kinds of sources."""
    parser.add_argument(
        "--source",
        action="append",
        metavar="|".join(kind.form for kind in KINDS),
        help="where readings come from; may be given several times",
    )
    group = parser.add_argument_group("sources, and how records become readings")
    for option in options():
        if option.in_files_only:
            continue
        words = [f"--{name}" for name in (option.name, *option.former)]
        if option.is_flag:
            group.add_argument(*words, action="store_const", const=True, help=option.help)
            continue
        group.add_argument(
            *words,
            action="append" if option.repeats else "store",
            metavar=option.metavar,
            choices=option.choices,
            help=option.help,
        )


def source_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of sources that were given, by name.

    Raises:
        ValueError: a text means no value of its option.
    """
    known = [option for option in options() if not option.in_files_only]
    texts = [(option, getattr(arguments, option.name.replace("-", "_"))) for option in known]
    return {option.name: option.parse(text) for option, text in texts if text is not None}


def options() -> list[Option[Any]]:
    """Return the options of all kinds of ours; several kinds may share one."""
    return list({option.name: option for kind in KINDS for option in kind.options}.values())
