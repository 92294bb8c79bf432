r"""Parts: a synchronised scan as two scans, one on each device and one at an evaluator.

A device steps its own events from a share. At each event in order it **answers**: the part that it
has made of the share since the one before, or that it has made none. The evaluator joins the parts
that were made of the share which counts, steps the event in order, and publishes the share of the
state behind it. Both run on the engine of all scans, so a late event of either kind is replayed
from its place.

- The **basis** of an answer names the event in order before it, of that key, and the share there:
  from where on the part was made, and of what. So an answer is content, and any evaluator can tell
  whether it is the one that it needs.
- Where shares differ, a device also states from which of a cell it has gone on. Answers and these
  name the last promise before them: rows that a device has revised meanwhile are on their way,
  until a promise that came after them has waited for them.
- A place is **whole** if each device that counts has answered it by the basis that counts. The
  evaluator **marks** it with this basis (`lasp_edge.ordered.gathering`). Behind a place that is not
  marked so nothing is known.
- A part that cannot be joined is **refused**: its device runs another file of the program, or lies.
  The place is evaluated without it, and lacks that device.

Answers and marks stand in the order of the engine at the event that they are about, so what the
engine stores, cuts and replays needs no other rule.

    >>> place = (20, "desk", ("end", "", 1), (1,))
    >>> sent = sent_at(place)
    >>> sent, ordered_place(sent.place("machine 7")) == place
    (OutputAt(time_us=20, tie=('\x00desk', 'end', '', 1), path=(1,)), True)

Law: once all is exchanged, the rows of devices and of each evaluator are those of the scan over all
events in one order (the theorem of `synchronised`).

Source: Flumina (`synchronised`), without its tree of workers and its mailboxes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, Final

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.ordered.answers import BASIS_BYTES, WAITS, is_incomplete, made_of, without
from lasp_edge.ordered.deltas import Change, Delta
from lasp_edge.ordered.log import Checkpoint
from lasp_edge.ordered.outputs import NO_TAGS, made_event
from lasp_edge.ordered.places import OF_DEVICE, Place
from lasp_edge.ordered.plain import check_plain, encoded
from lasp_edge.ordered.resuming import is_resumption, resumed_from
from lasp_edge.ordered.runs import ROW, SHARED, RunLog
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.ordered.sent_outputs import OutputAt
from lasp_edge.ordered.short_answers import ANSWER
from lasp_edge.ordered.stages import KeyOf, ScanStage, StreamStage
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.reasons import reason_of

FIRST: Final = b"first"
"""The basis of the share of the first state."""
SHARE: Final = "s"
"""What stands first in the share behind an event in order, which an evaluator's half gives beside
rows."""
FAILED: Final = "f"
"""What stands first in what else it gives, where something failed at an event in order: the device
whose part is refused, "" for the scan's own step, and the reason."""
MOST_REFUSED: Final = 50
"""Devices that are named at an event in order whose parts are refused there, at most: they are in
what is given at one place."""


def sent_at(place: Place) -> OutputAt:
    """Return the place, among the outputs of one sender, of one about an event in order."""
    time_us, device, tie, path = place
    return OutputAt(time_us, (OF_DEVICE + device, *tie), path)


def ordered_place(place: Place) -> Place:
    """Return the place of the event in order that something at a place is about."""
    time_us, _, tie, path = place
    return time_us, str(tie[0])[1:], tie[1:], path[1:] if is_incomplete(path) else path


def is_about_order(place: Place) -> bool:
    """Return whether what stands at a place is about an event in order."""
    return str(place[2][0]).startswith(OF_DEVICE)


def basis_of(place: Place, share: Any) -> bytes:
    """Return what names the share behind an event in order: where a part of it begins."""
    return sha256(encoded((*place, share))).digest()[:BASIS_BYTES]


class LeafScan(Scan[Any]):
    """A device's half: its events, and the published places.

    The state is (basis, what was made of the share, whether anything was, the share; None where
    that is always the same), and True behind these if readings since then are retained no more; ()
    while it waits.

    Args:
        scan: the scan.
        stepper: steps as the scan does, in the steps of its values.

    Attributes:
        stepper: it.
    """

    name = "leaf"

    def __init__(self, scan: Synchronised[Any], stepper: Scan[Any] | None = None) -> None:
        self.stepper = stepper or scan
        self._is_constant = scan.is_share_constant
        self.zero = self._begun(FIRST, scan.share(scan.zero))

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        if event.name == SHARED:
            known, share, basis, *resumed = event.value
            if resumed and state and state[0] == basis:
                return state, ()  # it has stepped that event, and lacks nothing
            after = (*self._begun(basis, share), *resumed) if known else ()
            if resumed:
                return after, ()
            answer = (ANSWER, state[0], self._sent(state), *state[4:]) if state else (WAITS,)
            return after, [answer]
        if not state:
            return state, ()
        after, values = self.stepper.step(state[1], event)
        return (state[0], after, True, state[3]), [(ROW, value) for value in values]

    def _begun(self, basis: bytes, share: Any) -> tuple[Any, ...]:
        return basis, share, False, None if self._is_constant else share

    def _sent(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return what was made of a share, as it is sent; () for nothing."""
        _, made, has_made, share = state[:4]
        if not has_made:
            return ()
        return (made,) if self._is_constant else without(made, share)


class LeafStage(ScanStage):
    """The half of a scan on a device: its local events, and the places that are published.

    Its outputs are rows, at its own events; and answers, each where what is about that event in
    order stands.

    Args:
        scan: the scan.
        key: gives the key of an event.
        device: the device.
        branches: of each local event, by name, its number among the sources of the scan.
        stepper: steps as the scan does, in the steps of its values.
    """

    operator = "leaf"

    def __init__(
        self,
        scan: Synchronised[Any],
        key: KeyOf | None,
        device: str,
        branches: Mapping[str, int],
        stepper: Scan[Any] | None = None,
    ) -> None:
        # Its stream tells whose its outputs are, so no name travels with each.
        self._half = LeafScan(scan, stepper)
        super().__init__(self._half, "", key, device)
        self._shares, self._branches = scan, dict(branches)
        self._inserted: set[str] = set()

    @property
    def has_inserted(self) -> bool:  # type: ignore[override]
        """It has events of which the next `push` gives the outputs."""
        return bool(self._inserted)

    def insert(self, places: list[Place], events: list[Event[Any]]) -> None:
        """Insert local events that are new, in order; the next `push` steps them."""
        try:
            keys = {""} if self.key is None else set(map(self.key, events))
        except BaseException as error:  # noqa: BLE001 - a user's key may raise anything
            pass_interrupt(error)
            keys = set()
        columns = dict.fromkeys(keys, (places, events))
        if len(keys) != 1:
            changes, _ = self._by_key(dict(zip(places, zip(repeat(None), events))))  # noqa: B905
            columns = {
                key: ([at for at, _ in of_key], [new for _, new in of_key if new is not None])
                for key, of_key in changes.items()
            }
        for key, column in columns.items():
            log = self.log(key)
            assert isinstance(log, RunLog)
            log.insert(*column)
        self._inserted |= columns.keys()

    def push(self, deltas: Sequence[Delta], frontier_us: int | None = None) -> Delta:
        *events, shared = deltas
        # Their names tell local events of several sources apart: `_sent` adds the branch.
        changes, moved = self._by_key(events[0] if len(events) == 1 else dict(_items_of(events)))
        for at, (old, new) in sorted(shared.items(), key=lambda each: ordered_place(each[0])):
            place = ordered_place(at)
            if old is not None and (new is None or new.key != old.key):
                moved = True
                changes.setdefault(old.key, []).append((place, None))
            if new is not None:
                changes.setdefault(new.key, []).append((place, self._shown(place, new)))
        if shared:
            for each in changes.values():
                each.sort(key=itemgetter(0))
        inserted, self._inserted = self._inserted, set()
        changes = {key: [] for key in inserted} | changes
        delta = self._applied((changes, moved), frontier_us)
        return {self._sent(place, change): change for place, change in delta.items()}

    def _made_log(self, key: str, base: Checkpoint | None) -> RunLog:
        return RunLog(self._half, self._half.stepper, key, self.failures, base)

    def _shown(self, place: Place, event: Event[Any]) -> Event[Any]:
        """Return a published event in order as the scan steps it."""
        resumed = (True,) if is_resumption(place) else ()
        last = resumed_from(event.value[1]) if resumed else (place, *event.value)
        if last is None:
            shown = True, self._shares.share(self._shares.zero), FIRST
        else:
            place, known, share = last
            if self._shares.is_share_constant:
                known, share = True, self._shares.empty
            shown = known, share, basis_of(place, share)
        return event._replace(name=SHARED, value=(*shown, *resumed))

    def _sent(self, place: Place, change: tuple[Event[Any] | None, Event[Any] | None]) -> Place:
        event = change[1] or change[0]
        assert event is not None
        if event.value[0] == ROW:
            time_us, device, tie, path = place
            return time_us, device, tie, (self._branches[str(tie[0])], *path)
        return sent_at((*place[:3], place[3][:-1])).place(self.device)


def _items_of(deltas: Iterable[Delta]) -> Iterator[tuple[Place, Change]]:
    """Yield the changes of several sources, whose places differ."""
    return chain.from_iterable(each.items() for each in deltas)


class RootScan(Scan[Any]):
    """An evaluator's half: events in order, each with its answers and its mark.

    The state is (state of the scan, basis of its share); () behind a place that is not whole.

    Args:
        scan: the scan.
        stepper: steps as the scan does, in the steps of its values.
    """

    name = "root"

    def __init__(self, scan: Synchronised[Any], stepper: Scan[Any] | None = None) -> None:
        self._scan, self._stepper = scan, stepper or scan
        self.zero = (scan.zero, FIRST)

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        value, answers, mark, place = event.value
        if not state or mark != state[1]:
            return (), ()
        before, basis = state
        parts = [(each, made) for each, of, made, *_ in answers if made and self.joins(of, basis)]
        joined, failed = self._joined(before, parts)
        try:
            stepped = self._stepper.step(joined, event._replace(value=value, key=""))
            return self._outcome(place, *stepped, failed)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            failed.append((FAILED, "", reason_of(error)))
        return self._outcome(place, joined, (), failed)  # it gives nothing, as anywhere

    def _outcome(
        self, place: Place, state: Any, values: Iterable[Any], failed: list[Any]
    ) -> tuple[Any, list[Any]]:
        """Return the state behind an event in order, with its basis, and what is given there."""
        share = self._scan.share(state)
        after = state, basis_of(place, share)
        outputs = [*((ROW, each) for each in values), (SHARE, share), *failed]
        check_plain(after)
        check_plain(tuple(outputs))
        return after, outputs

    def _joined(
        self, state: Any, parts: Iterable[tuple[str, tuple[Any, ...]]]
    ) -> tuple[Any, list[Any]]:
        """Return a state with the parts of devices, and those that are refused, with reasons."""
        share, failed = self._scan.share(state), list[Any]()
        for device, made in parts:
            try:
                joined = self._scan.join(state, self._part(made, share))
                check_plain(joined)
                check_plain(self._scan.share(joined))
            except BaseException as error:  # noqa: BLE001 - a device may send anything
                pass_interrupt(error)
                if len(failed) < MOST_REFUSED:
                    failed.append((FAILED, device, reason_of(error)))
            else:
                state = joined
        return state, failed

    def _part(self, made: tuple[Any, ...], share: Any) -> Any:
        """Return what a device has made of a share.

        Raises:
            ValueError, TypeError, StopIteration: it was made of no such share.
        """
        if not self._scan.is_share_constant:
            return made_of(made, share)
        (part,) = made
        return part

    @staticmethod
    def joins(basis: bytes, current: bytes) -> bool:
        """Return whether a part was made of the share that counts."""
        return basis == current


class RootStage(ScanStage):
    """The half of a scan at an evaluator, over gathered events: its rows and its shares."""

    operator = "root"

    def __init__(
        self, scan: Synchronised[Any], name: str, stepper: Scan[Any] | None = None
    ) -> None:
        super().__init__(RootScan(scan, stepper), name, lambda event: event.key)


@dataclass(slots=True)
class RootChange:
    """How what an evaluator's half gives at an event in order has changed, but for rows.

    Attributes:
        share: whether it is known now, and the share; None where it is as before.
        is_again: nothing was known before: what fails now is all that fails.
        failed: a device, or "", with the reason -> whether it fails now.
    """

    share: tuple[bool, Any] | None = None
    is_again: bool = False
    failed: dict[tuple[str, str], bool] = field(default_factory=dict)

    def failed_after(self, before: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Return what fails now, sorted, after what failed before."""
        kept = () if self.is_again else before
        return tuple(sorted(at for at in {*kept, *self.failed} if self.failed.get(at, True)))


_NO_OUTPUT: Final[tuple[Any, ...]] = (None,)


def changes_at(root: Delta) -> dict[Place, RootChange]:
    """Return how what an evaluator's half gives has changed at each event in order."""
    found: dict[Place, RootChange] = {}
    for at, (old, new) in root.items():
        change = found.setdefault((*at[:3], at[3][:-1]), RootChange())
        was, now = (each.value if each is not None else _NO_OUTPUT for each in (old, new))
        if now[0] == SHARE:
            change.share, change.is_again = (True, now[1]), was[0] is None
        elif was[0] == SHARE and change.share is None:
            change.share = (False, None)
        if was[0] == FAILED:
            change.failed.setdefault(was[1:], False)
        if now[0] == FAILED:
            change.failed[now[1:]] = True
    return found


class RowsStage(StreamStage):
    """The rows of both halves, each where the scan over all events has it.

    Args:
        name: the stream's.
    """

    operator = "rows"

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def push(self, deltas: Sequence[Delta], frontier_us: int | None = None) -> Delta:  # noqa: ARG002
        found: Delta = {}
        for delta in deltas:
            for place, (before, after) in delta.items():
                old, new = self._row(before), self._row(after)
                if old is not None or new is not None:
                    found[place] = (old, new)
        return found

    def _row(self, event: Event[Any] | None) -> Event[Any] | None:
        if event is None or event.value[0] != ROW:
            return None
        _, value, time_us, device, tags, key = event
        return made_event((self._name, value[1], time_us, device, tags or NO_TAGS, key))
