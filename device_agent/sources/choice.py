"""The table of sources: from `--source KIND:PLACE`, and the options beside it, to a source."""

import argparse
from typing import Any

from device_agent.sources import csv_file, host, jsonl_file, mqtt_topic
from device_agent.sources.source import Option, Source, SourceContext, SourceKind

KINDS: tuple[SourceKind, ...] = (host.KIND, jsonl_file.KIND, csv_file.KIND, mqtt_topic.KIND)
"""Every kind of source; a new one is its file and its place in this row."""


def source_from_spec(spec: str, context: SourceContext) -> Source:
    """Return the source that a text such as `host` or `csv:PATH` names.

    Raises:
        ValueError: the text, or an option beside it, cannot work.
    """
    name, colon, place = spec.partition(":")
    kind = next((kind for kind in KINDS if kind.name == name), None)
    if kind is None or bool(colon) != bool(kind.place) or bool(place) != bool(kind.place):
        *others, last = [kind.form for kind in KINDS]
        raise ValueError(f"--source is {', '.join(others)} or {last}, not {spec!r}")
    return kind.make(spec, place, context)


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `--source` and the options of all kinds of sources."""
    parser.add_argument(
        "--source",
        action="append",
        required=True,
        metavar="|".join(kind.form for kind in KINDS),
        help="where readings come from; may be given several times",
    )
    group = parser.add_argument_group("sources, and how records become readings")
    for option in _options():
        if option.is_flag:
            words = f"--{option.name}"
            group.add_argument(words, action="store_const", const=True, help=option.help)
            continue
        group.add_argument(
            f"--{option.name}",
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
    texts = [(o, getattr(arguments, o.name.replace("-", "_"))) for o in _options()]
    return {option.name: option.parse(text) for option, text in texts if text is not None}


def _options() -> list[Option[Any]]:
    """Return the options of all kinds; several kinds may share one."""
    return list({option.name: option for kind in KINDS for option in kind.options}.values())
