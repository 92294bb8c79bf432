"""Answers: what a device has made up to an event in order, as it is sent and read.

An answer names the share that it was made of. From which shares a device has gone on it states for
each cell of events in order, apart from its answers: they name places and have all that was made,
and need not travel again for that. Both leave with the life that gives them, and how often that one
had promised: a promise of a greater number has waited for all that was revised with them
(`lasp_edge.ordered.gathering`).

A life on an older store answers again what it does not know, without the readings that it lost. So
up to where those may lie its answers stand apart, under places of their own, and take no other's
place: an **incomplete** answer counts where there is no other, or one by another share, and rows
name the device there. They do so, too, at the event in order in whose slice the lost readings end:
an answer of before has no readings that came since.

A device that retains no readings of a time any more can answer no event in order there. It states
that of each cell for which it is asked: it is **over** there. Whoever evaluates goes on without a
part of it, by whichever share, and rows name it.

What was made of a share is sent without what it still has of that: who joins it knows the share.

    >>> sent = without((("model", 2), (3, 70)), (("model", 2), (0, 0)))
    >>> sent, made_of(sent, (("model", 2), (0, 0)))
    ((1, (3, 70)), (('model', 2), (3, 70)))
    >>> without(7, 5), made_of((-1, 7), 5)
    ((-1, 7), 7)
    >>> at, content = stated_at(20_000_000), statement([b"basis1"], (1, 3))
    >>> is_of_cell(at.place("pi-1")), stated(content[1])
    (True, GoneOn(bases=b'basis1', incarnation=1, beats=3))
    >>> answer = PartAnswer("pi-1", b"first", ()).stating(stated(content[1]))
    >>> answer.has_gone_on_from(b"basis1"), answer.has_gone_on_from(b"other")
    (True, False)
    >>> answer.counts(b"first"), answer.counts(b"other")
    (True, False)
    >>> PartAnswer("pi-1", b"first", ()).stating(GoneOn(OVER)).counts(b"other")
    True
    >>> again = PartAnswer("pi-1", b"first", (), incarnation=2, is_incomplete=True)
    >>> standing(answer, again) == answer, standing(None, again) == again
    (True, True)
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self

from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.sent_outputs import OutputAt, OutputContent
from lasp_edge.ordered.short_answers import ANSWER, GONE_ON, OF_CELL

WAITS: Final = "w"
"""What stands first in what is given while a device cannot answer yet."""
BASIS_BYTES: Final = 6
"""Bytes of the basis of a share behind an event in order: it is compared with the one that counts
there alone, and another share of that event has the same once in 2 ** 48 times."""


OVER: Final = b"-"
"""Stands in place of bases where a device is over; it is shorter than any."""


class GoneOn(NamedTuple):
    """From which shares of a cell a device has gone on.

    Attributes:
        bases: of these, sorted, one after another; or `OVER`.
        incarnation, beats: of the life that has stated it, and how often that one had promised.
    """

    bases: bytes = b""
    incarnation: int = 0
    beats: int = 0


NOWHERE: Final = GoneOn()
"""A device has stated nothing."""


class PartAnswer(NamedTuple):
    """What a device has made up to an event in order.

    Attributes:
        device: the device.
        basis: of the share that it was made of.
        made: what it has made; () for nothing. See `without`, where shares differ.
        gone_on: the bases of the shares from which the device has gone on, of the cell of the event
            in order, one after another; or `OVER`.
        incarnation, beats: of the life that has sent it or stated these, whichever was later, and
            how often that one had promised.
        is_incomplete: it may be without readings that the device had once.
        is_last: those end in its slice: an answer of before lacks what came since.
    """

    device: str
    basis: bytes
    made: tuple[Any, ...]
    gone_on: bytes = b""
    incarnation: int = 0
    beats: int = 0
    is_incomplete: bool = False
    is_last: bool = False

    def stating(self, gone_on: GoneOn) -> Self:
        """Return the answer of a device that has stated this."""
        life = max((self.incarnation, self.beats), gone_on[1:])
        return self._replace(gone_on=gone_on.bases, incarnation=life[0], beats=life[1])

    @property
    def is_over(self) -> bool:
        """Whether no other answer of the device will come."""
        return self.gone_on == OVER

    def counts(self, basis: bytes) -> bool:
        """Return whether nobody waits for another answer, where this basis counts."""
        return self.basis == basis or self.is_over

    def has_gone_on_from(self, basis: bytes) -> bool:
        """Return whether the device has gone on from the share that counts."""
        return self.is_over or basis in _bases_in(self.gone_on)


@lru_cache(maxsize=256)
def _bases_in(bases: bytes) -> frozenset[bytes]:
    return frozenset(bases[at : at + BASIS_BYTES] for at in range(0, len(bases), BASIS_BYTES))


def standing(complete: PartAnswer | None, incomplete: PartAnswer) -> PartAnswer:
    """Return what counts of a device's two answers at an event in order."""
    if complete is None:
        return incomplete
    if complete[4:6] > incomplete[4:6]:  # of a later life, or given later
        return complete
    if complete.basis != incomplete.basis:
        return incomplete
    return complete._replace(is_incomplete=incomplete.is_last)


_FORM: Final = (bytes, tuple, int, int)
_INCOMPLETE_FORM: Final = (*_FORM, bool)
_STATEMENT: Final = (bytes, int, int)
"""The types of what is sent of an answer, of one that is incomplete, and of a statement."""
INCOMPLETE: Final = -1
"""What stands first in the path of an incomplete answer: of an event it is no number."""
IsLast = Callable[[Place, str], bool | None]
"""Returns whether an answer at an event in order of a key is the last one that is incomplete; None
where it is complete."""


def differs_from(answers: Mapping[str, PartAnswer] | PartAnswer, basis: bytes | None) -> bool:
    """Return whether an answer, of each device or one of all, was made by another basis."""
    given = [answers] if isinstance(answers, PartAnswer) else answers.values()
    return any(each.basis != basis for each in given)


def is_incomplete(path: tuple[int, ...]) -> bool:
    """Return whether an incomplete answer stands under a path."""
    return path[:1] == (INCOMPLETE,)


def part_answer(device: str, value: Any) -> PartAnswer | None:
    """Return what a device has answered; None where that is no answer: it may send anything."""
    if _has_form(value, ANSWER, _FORM):
        _, basis, made, incarnation, beats = value
        return PartAnswer(device, basis, made, b"", incarnation, beats)
    if not _has_form(value, ANSWER, _INCOMPLETE_FORM):
        return None
    _, basis, made, incarnation, beats, is_last = value
    return PartAnswer(device, basis, made, b"", incarnation, beats, True, is_last)  # noqa: FBT003


def _has_form(value: Any, first: str, form: tuple[type, ...]) -> bool:
    if type(value) is not tuple or len(value) != len(form) + 1 or value[0] != first:
        return False
    return tuple(map(type, value[1:])) == form


_WHOLE: Final = -1
"""Stands in place of what is left out where nothing is."""


def without(made: Any, share: Any) -> tuple[Any, ...]:
    """Return what was made of a share, without the parts of the share that it still has.

    Returns:
        The sum of 1 << n for each part n that is left out, and the others.
    """
    if type(made) is not tuple or type(share) is not tuple or len(made) != len(share):
        return _WHOLE, made
    are_same = [same(*each) for each in zip(made, share, strict=True)]
    left_out = sum(1 << n for n, is_same in enumerate(are_same) if is_same)
    return left_out, *(each for each, is_same in zip(made, are_same, strict=True) if not is_same)


def made_of(sent: tuple[Any, ...], share: Any) -> Any:
    """Return what was made of a share, as `without` gave it.

    Raises:
        ValueError, TypeError, StopIteration: it was made of no such share.
    """
    left_out, *others = sent
    if left_out == _WHOLE:
        (made,) = others
        return made
    rest = iter(others)
    made = tuple([part if left_out >> n & 1 else next(rest) for n, part in enumerate(share)])
    if len(others) + left_out.bit_count() != len(made):
        raise ValueError("a part of another share")
    return made


def stated_at(cell_us: int) -> OutputAt:
    """Return where it stands among a device's outputs from which shares of a cell it goes on."""
    return OutputAt(cell_us, OF_CELL, ())


def is_of_cell(place: Place) -> bool:
    """Return whether what stands at a place is about a cell of events in order."""
    return place[2] == OF_CELL


def statement(bases: Iterable[bytes], life: tuple[int, int]) -> OutputContent:
    """Return what a device sends to state from which shares of a cell it has gone on."""
    return "", (GONE_ON, b"".join(sorted(bases)), *life), "", ""


def stated(value: Any) -> GoneOn:
    """Return what a device has stated; nothing where it is no statement: it may send anything."""
    return GoneOn(*value[1:]) if _has_form(value, GONE_ON, _STATEMENT) else NOWHERE


def kept_answers(delta: Delta) -> Delta:
    """Return how what leaves a device's half changes: while it waits, its last answer stays."""
    return {
        place: change
        for place, change in delta.items()
        if change[1] is None or change[1].value[0] != WAITS
    }


def sent_answers(delta: Delta, life: tuple[int, int], is_last: IsLast | None = None) -> Delta:
    """Return how answers change as they are sent: by which life, after how many promises of it.

    Without a key: that of an event in order is known where it is evaluated. An answer of a device's
    half that lacks readings states so behind what was made.

    Args:
        delta: of what leaves a device's half.
        life: it, and how often it has promised.
        is_last: which answers are incomplete; None: all are complete.
    """
    found: Delta = {}
    for place, (old, new) in delta.items():
        answer = new or old
        if answer is None or answer.value[0] != ANSWER:
            found[place] = (old, new)
            continue
        last = None if is_last is None else is_last(place, answer.key)
        if last is None and answer.value[3:]:
            last = True
        at = place if last is None else (*place[:3], (INCOMPLETE, *place[3]))
        more = () if last is None else (last,)
        found[at] = (old, new and new._replace(value=(*new.value[:3], *life, *more), key=""))
    return found
