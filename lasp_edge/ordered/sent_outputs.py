"""Outputs of a device's streams as they travel, for streams over the fleet that are made of them.

A pane entry holds the outputs of a cell of ten seconds, each at its place, or that there is nothing
any more; answers are in it as `lasp_edge.ordered.short_answers` says. Of the lives of a device the
newest entry that has a place counts there: united as items are, an output that was taken back in a
later life would stay. In the order over the fleet, a timer of a device is of that device.

    >>> at, first = OutputAt(20_000_000, ("x", "", 7), (0,)), (1, 7, 3)
    >>> cell = outputs_in(packed_outputs({at: ("x", 1.5, "attic", "")}), first)
    >>> cell == {at: (first, ("x", 1.5, "attic", ""))}
    True
    >>> newest([outputs_in(packed_outputs({at: None}), (2, 9, 1)), cell]) == {at: ((2, 9, 1), None)}
    True
    >>> form = OutputForm((("x", False),))
    >>> form.within_limits((packed_outputs({at: None}),)), form.within_limits((b"",))
    (True, False)
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from lasp_edge.event import Event, tags_text
from lasp_edge.folds.packed import MAX_BINARY_BYTES
from lasp_edge.ordered.cells import CELL_US
from lasp_edge.ordered.outputs import made_event
from lasp_edge.ordered.places import OF_DEVICE, VALUE_AT, Place, Tie
from lasp_edge.ordered.plain import are_short_integers, check_plain, decoded, encoded
from lasp_edge.ordered.sent_rows import Version
from lasp_edge.ordered.short_answers import long_row, short_row
from lasp_edge.protocol.lake_columns import ITEMS

_OF_TIES: Final = frozenset({int, str})
_TEXTS: Final = [str, str]
OutputContent = tuple[str, Any, str, str]
"""Name of the event, value, key, and tags as canonical text."""


class OutputAt(NamedTuple):
    """Where an output stands among those of its stream and device."""

    time_us: int
    tie: Tie
    path: tuple[int, ...]

    def place(self, device: str) -> Place:
        """Return its place in the order over the fleet."""
        return self.time_us, device, self.tie, self.path


OutputCell = dict[OutputAt, tuple[Version, OutputContent | None]]
"""The newest version at each place; without content there is nothing any more."""


class OutputItem(NamedTuple):
    """A device's output at a place of one of its streams, as an engine takes it.

    Attributes:
        event: the stream's name.
        content: None: there is nothing any more.
    """

    event: str
    at: OutputAt
    device: str
    version: Version
    content: OutputContent | None

    @property
    def time_us(self) -> int:
        """Its time."""
        return self.at.time_us


def output_at(place: Place) -> OutputAt:
    """Return a place without its device, which is the sender of the entry."""
    return OutputAt(place[0], *place[2:])


def content_of(event: Event) -> OutputContent:
    """Return what travels of an output."""
    return event.name, event.value, event.key, tags_text(event.tags)


def event_of(at: OutputAt, device: str, content: OutputContent | None) -> Event | None:
    """Return an output as scans over the fleet see it."""
    if content is None:
        return None
    name, value, key, tags = content
    return made_event((name, value, at.time_us, device, _tags(tags), key))


@lru_cache(maxsize=1_000)
def _tags(text: str) -> Mapping[str, Any]:
    return MappingProxyType(json.loads(text) if text else {})


def packed_outputs(outputs: Mapping[OutputAt, OutputContent | None]) -> bytes:
    """Return the bytes of a cell of outputs."""
    rows = [(*at, outputs[at]) for at in sorted(outputs)]
    return encoded(
        [short_row(row) if str(row[1][0]).startswith(OF_DEVICE) else row for row in rows]
    )


def outputs_in(packed: bytes, version: Version) -> OutputCell:
    """Return the outputs that an entry of a version holds."""
    return {at: (version, content) for at, content in _received(packed).items()}


def sent_outputs(packed: bytes) -> dict[OutputAt, OutputContent | None]:
    """Return the outputs that an entry holds."""
    rows = [long_row(row) if type(row[1]) is not tuple else row for row in decoded(packed)]
    return {OutputAt(*at): content for *at, content in rows}


_received = lru_cache(maxsize=64)(sent_outputs)
"""An evaluator reads an entry when it comes, and whenever its block is replayed."""


def newest(cells: Iterable[OutputCell]) -> OutputCell:
    """Return a device's output at each place: of several entries the newest that has it."""
    found: OutputCell = {}
    for cell in cells:
        for at, each in cell.items():
            if at not in found or each[0] > found[at][0]:
                found[at] = each
    return found


class OutputForm(NamedTuple):
    """The form of a cell of outputs, as it travels.

    Attributes:
        events: those of the program, and whether their readings are texts.
    """

    events: tuple[tuple[str, bool], ...]

    @property
    def columns_named(self) -> tuple[str, ...]:
        """Names of the columns, in order: outputs stand where items do."""
        return (ITEMS,)

    def within_limits(self, partial: Sequence[Any]) -> bool:
        """Return whether `partial`, which may hold anything, is a cell of outputs."""
        if len(partial) != 1 or type(partial[0]) is not bytes or len(partial[0]) > MAX_BINARY_BYTES:
            return False
        try:
            outputs = _received(partial[0])
            starts = {at.time_us // CELL_US for at in outputs}
            fits = all(_fits(at, content) for at, content in outputs.items())
            are_ties = all(_are_comparable(at.tie, dict(self.events)) for at in outputs)
            return fits and are_ties and len(starts) == 1 and packed_outputs(outputs) == partial[0]
        except Exception:  # noqa: BLE001 - a stranger may send anything
            return False


def _fits(at: OutputAt, content: OutputContent | None) -> bool:
    time_us, tie, path = at
    kinds = list(map(type, tie))
    is_tie = type(tie) is tuple and _OF_TIES.issuperset(kinds)
    # Places are compared, so what stands first in a tie is a text everywhere.
    are_texts = kinds[:2] == _TEXTS
    are_whole = are_short_integers((time_us, *path))
    if not (are_whole and type(path) is tuple and is_tie and are_texts):
        return False
    if content is None:
        return True
    name, value, key, tags = content
    check_plain(value)
    return type(name) is str and type(key) is str and type(tags) is str and _are_canonical(tags)


def _are_comparable(tie: Any, events: Mapping[str, bool]) -> bool:
    """Return whether a tie compares with all others that begin as it does: see `Tie`.

    A reading's third part is its value, a number or a text by its event. All others are texts.
    """
    if tie[0][:1] == OF_DEVICE:  # where an answer stands: see `lasp_edge.ordered.parted`
        tie = tie[1:]
    of_value = str if events.get(tie[0], True) else int
    return all(type(each) is (of_value if n == VALUE_AT else str) for n, each in enumerate(tie))


@lru_cache(maxsize=4_096)
def _are_canonical(text: str) -> bool:
    tags = json.loads(text) if text else {}
    return all(type(each) is str for each in tags.values()) and tags_text(tags) == text
