"""Where the readings of each event go: windows, variables that collect them, and handlers.

Readings that are texts go into streams alone; like all others they are known again by a number.

>>> text_number("dog cat"), text_number("dog cat ")
(1325867814, 458507137)
>>> text_number(5)
Traceback (most recent call last):
    ...
lasp_edge.folds.numbers.Refused: not a text
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from lasp_edge.folds.numbers import LIMIT, Refused
from lasp_edge.language.declarations import EventType, Window
from lasp_edge.language.plan import Plan
from lasp_edge.language.retracting import keeps_all
from lasp_edge.protocol.limits import EARLIEST_PANE_US

TEXT_BYTES = 1_024
"""Bytes of one reading, at most: an item of a stream stays small."""


class WindowTarget(NamedTuple):
    """A window that readings go into; the fold of an `infallible` one is built in."""

    window: Window
    span_us: int
    stream: int
    infallible: bool


def first_us(spans_us: Iterable[int]) -> int:
    """Return the first time whose panes, of these lengths, a lander takes."""
    starts_us = [-(-EARLIEST_PANE_US // span_us) * span_us for span_us in spans_us]
    return max(starts_us, default=EARLIEST_PANE_US)


def text_number(value: Any) -> int:
    """Return a number for a text, in the range of quantised readings.

    Of one time and set of tags, two texts have one number once in 2**31.

    Raises:
        Refused: it is no text, or a long one.
    """
    if type(value) is not str:
        raise Refused("missing value" if value is None else "not a text")
    encoded = value.encode(errors="replace")
    if len(encoded) > TEXT_BYTES:
        raise Refused(f"a text of more than {TEXT_BYTES} bytes")
    return int.from_bytes(sha256(encoded).digest()[:4], "big") % LIMIT


class Route:
    """Where the readings of one event go.

    Attributes:
        event: the event.
        quantise: from a value as read to its integer.
        targets: the windows, by stream.
        collecting: the variables that collect it.
        needs_event: a handler or a key function of the user's wants an Event.
        validate_each: a fold of the user's own folds a variable that collects it, and may fail.
        kept: windows that are not plain are made from it (`device_agent.agent.rebuilding`): so
            readings that were stamped on arrival are kept as identities, too.
        passed_on: that, or streams are made from it.
        keeps_all: why no reading can be taken back; None where each can be.
        by_column: no function of the user's sees its readings one by one.
    """

    def __init__(self, plan: Plan, event: EventType) -> None:
        self.event = event
        self.quantise = text_number if event.text else event.scale.quantise
        every = [w for w in plan.windows.values() if w.source.name == event.name]
        windows = [w for w in every if w.is_plain]
        self.kept = len(windows) < len(every)
        self.targets = tuple(
            WindowTarget(w, w.span_us, w.stream, w.fold.is_built_in)
            for w in sorted(windows, key=lambda w: w.stream)
        )
        self.collecting = plan.collections.get(event.name, ())
        keyed = any(w.keyed for w in windows) or any(v.keyed for v in self.collecting)
        streamed = event.name in plan.evaluated_events
        leaves = event.name in plan.item_streams
        self.passed_on = streamed or leaves or self.kept
        self.keeps_all = keeps_all(plan, event.name)
        handled = bool(plan.functions.handlers.get(event.name))
        self.needs_event = keyed or handled or event.text
        own = [f for f in plan.local_folds.values() if not f.made_of and not f.fold.is_built_in]
        fallible = {fold.source.name for fold in own}
        self.validate_each = any(variable.name in fallible for variable in self.collecting)
        infallible = all(target.infallible for target in self.targets)
        self.by_column = infallible and not self.needs_event and not self.validate_each
