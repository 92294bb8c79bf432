"""Fitting: which pane entries of a block a sink takes, and for which reason it leaves the others.

Every entry stands for itself: one that is not taken never holds those beside it. A block whose
entries are all taken, which is nearly every one, is looked at by column and not by entry.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import compress
from typing import Any, NamedTuple, Protocol

from crdts import ControlLog, Membership, Replica
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.protocol.acks import NotTaken
from lasp_edge.protocol.admission import counts
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.limits import EARLIEST_PANE_US
from lasp_edge.protocol.spans import WindowShape


class PartialForm(Protocol):
    """The form of partials: a fold's, or that in which rows of results travel."""

    @property
    def columns_named(self) -> tuple[str, ...]:
        """Names of the columns, in order."""

    def within_limits(self, partial: Sequence[Any]) -> bool:
        """Return whether `partial`, which may hold anything, is valid as one device's partial."""


class FoldedStream(Protocol):
    """What must be known of partials to take them; `lasp_edge.language` has such objects."""

    @property
    def stream(self) -> int:
        """The id that travels with them."""

    @property
    def fold(self) -> PartialForm:
        """The fold whose partials they are."""


class PaneStream(FoldedStream, WindowShape, Protocol):
    """What must be known of a window to take its panes, or of a result to take its rows."""


class ControlledStreams(Protocol):
    """What must be known of windows with parameters to take their panes."""

    @property
    def parameters(self) -> Collection[str]:
        """Those of the program."""

    @property
    def log(self) -> ControlLog:
        """Their schedules."""

    @property
    def control(self) -> int:
        """The log's digest; 0 of an empty one."""

    def stream(self, stream: int) -> PaneStream | None:
        """Return what is known of a stream; None for an unknown one."""

    def hear(self, new: ControlLog) -> bool:
        """Join entries; return whether some were new."""


class PartialsRefusedError(ValueError):
    """Partials are not in the form of their fold; the text is the reason that is counted."""


class LeftOut(NamedTuple):
    """Entries of a block that are not taken.

    Attributes:
        reason: for the device.
        text: what is counted, which may be more precise.
    """

    reason: NotTaken
    text: str
    seqs: tuple[int, ...]


class Fitting(NamedTuple):
    """A block, sorted out.

    Attributes:
        taken: the entries that are taken; None without any.
        untaken: the others, by reason.
    """

    taken: PaneEntries | None
    untaken: tuple[LeftOut, ...] = ()


def sort_out(
    block: PaneEntries,
    window: PaneStream | None,
    sender: Replica,
    latest_us: int,
    membership: Membership,
) -> Fitting:
    """Return which entries of a block are taken.

    Args:
        block: the entries.
        window: the window whose panes they are; None where no such one is known.
        sender: the replica that sent them.
        latest_us: panes that start later are from the far future.
        membership: all member commands.
    """
    reason = _block_refusal(block, window, sender)
    if reason is not None:
        return Fitting(None, (LeftOut(reason, reason.text, block.seqs),))
    assert window is not None
    rest: PaneEntries | None = block
    found: list[LeftOut] = []
    for rule in (_before_1900, _far_future(latest_us), _in_form(window), _retired(membership)):
        if rest is None:
            break
        rest, untaken = rule(rest, sender.device)
        found += untaken
    return Fitting(rest, tuple(found))


Sorted = tuple[PaneEntries | None, list[LeftOut]]
Rule = Callable[[PaneEntries, str], Sorted]
"""Takes a block of a device; returns what is left of it, and what is not taken."""


def _block_refusal(
    block: PaneEntries, window: PaneStream | None, sender: Replica
) -> NotTaken | None:
    """Return why none of a block's entries is taken; None if that is to be seen."""
    if window is None:
        return NotTaken.UNKNOWN_STREAM
    if block.span_us != window.span_us:
        return NotTaken.OTHER_LENGTH
    if (block.incarnation, block.nonce) > sender[:2]:
        return NotTaken.LATER_REPLICA
    return None


def _before_1900(block: PaneEntries, _device: str) -> Sorted:
    if min(block.panes_us) >= EARLIEST_PANE_US:
        return block, []
    fits = [pane_us >= EARLIEST_PANE_US for pane_us in block.panes_us]
    return _without(block, fits, NotTaken.BEFORE_1900)


def _far_future(latest_us: int) -> Rule:
    def rule(block: PaneEntries, _device: str) -> Sorted:
        if max(block.panes_us) <= latest_us:
            return block, []
        fits = [pane_us <= latest_us for pane_us in block.panes_us]
        return _without(block, fits, NotTaken.FAR_FUTURE)

    return rule


def _in_form(window: PaneStream) -> Rule:
    def rule(block: PaneEntries, _device: str) -> Sorted:
        fold, columns = window.fold, block.columns
        try:
            check_partials(fold, columns)
        except PartialsRefusedError as error:
            same_width = len(columns) == len(fold.columns_named)
            rows = zip(*columns, strict=True)
            fits = [same_width and fold.within_limits(partial) for partial in rows]
            return _without(block, fits or [False] * len(block.seqs), NotTaken.NOT_IN_FORM, error)
        return block, []

    return rule


def _retired(membership: Membership) -> Rule:
    def rule(block: PaneEntries, device: str) -> Sorted:
        fits = counts(block, device, membership)
        return (block, []) if all(fits) else _without(block, fits, NotTaken.RETIRED)

    return rule


def _without(
    block: PaneEntries, fits: Sequence[bool], reason: NotTaken, error: Exception | None = None
) -> Sorted:
    """Return the entries of a block that fit, and the others with their reason."""
    others = tuple(seq for seq, fit in zip(block.seqs, fits, strict=True) if not fit)
    untaken = [LeftOut(reason, str(error or reason.text), others)] if others else []
    if not any(fits):
        return None, untaken
    chosen = block._replace(
        columns=tuple([tuple(compress(column, fits)) for column in block.columns]),
        keys=tuple(compress(block.keys, fits)),
        panes_us=tuple(compress(block.panes_us, fits)),
        seqs=tuple(compress(block.seqs, fits)),
    )
    return chosen, untaken


def check_partials(fold: PartialForm, columns: Sequence[Sequence[Any]]) -> None:
    """Check columns of partials against their fold.

    Raises:
        PartialsRefusedError: one of them is not in the fold's form.
    """
    if len(columns) != len(fold.columns_named):
        raise PartialsRefusedError("not the columns of its stream")
    by_row = True
    if isinstance(fold, Fold):
        for column, values in zip(fold.columns, columns, strict=True):
            if not column.binary:
                _check_integers(column, values)
        # Integers that stand alone were checked by column. What is packed, or stands beside another
        # column, takes a look at each partial.
        by_row = any(column.binary or column.by for column in fold.columns)
    if by_row and not all(map(fold.within_limits, zip(*columns, strict=True))):
        raise PartialsRefusedError("partial not in its form")


def _check_integers(column: Column, values: Sequence[Any]) -> None:
    known = values
    if None in values:
        if column.op is Op.SUM:
            raise PartialsRefusedError("a total is missing")
        known = [value for value in values if value is not None]
    if not {int}.issuperset(map(type, known)):
        raise PartialsRefusedError("not integers")
    if known and not (-column.limit < min(known) and max(known) < column.limit):
        raise PartialsRefusedError("partial out of range")
