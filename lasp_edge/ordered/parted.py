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
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.ordered.answers import (
    ANSWER,
    BASIS_BYTES,
    NOWHERE,
    WAITS,
    GoneOn,
    PartAnswer,
    is_of_cell,
    part_answer,
    stated,
)
from lasp_edge.ordered.cells import cell_of
from lasp_edge.ordered.deltas import Change, Delta, same_event
from lasp_edge.ordered.log import Checkpoint
from lasp_edge.ordered.outputs import NO_TAGS, made_event
from lasp_edge.ordered.places import OF_DEVICE, Place, child_place
from lasp_edge.ordered.plain import check_plain, encoded
from lasp_edge.ordered.runs import ROW, SHARED, RunLog
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.ordered.sent_outputs import OutputAt
from lasp_edge.ordered.stages import KeyOf, ScanStage, StreamStage
from lasp_edge.ordered.synchronised import Synchronised

FIRST: Final = b"first"
"""The basis of the share of the first state."""
SHARE: Final = "s"
"""What stands first in the share behind an event in order, which an evaluator's half gives beside
rows."""


def sent_at(place: Place) -> OutputAt:
    """Return where what is about an event in order stands among what one sender has sent."""
    time_us, device, tie, path = place
    return OutputAt(time_us, (OF_DEVICE + device, *tie), path)


def ordered_place(place: Place) -> Place:
    """Return the place of the event in order that something at a place is about."""
    time_us, _, tie, path = place
    return time_us, str(tie[0])[1:], tie[1:], path


def is_about_order(place: Place) -> bool:
    """Return whether what stands at a place is about an event in order."""
    return str(place[2][0]).startswith(OF_DEVICE)


def basis_of(place: Place, share: Any) -> bytes:
    """Return what names the share behind an event in order: where a part of it begins."""
    return sha256(encoded((*place, share))).digest()[:BASIS_BYTES]


class LeafScan(Scan[Any]):
    """A device's half: its events, and the published places.

    The state is (basis, what was made of the share, whether anything was); () while it waits.

    Args:
        scan: the scan.
        stepper: steps as the scan does, in the steps of its values.

    Attributes:
        stepper: it.
    """

    name = "leaf"

    def __init__(self, scan: Synchronised[Any], stepper: Scan[Any] | None = None) -> None:
        self.stepper = stepper or scan
        self.zero = (FIRST, scan.share(scan.zero), False)

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        if event.name == SHARED:
            known, share, basis = event.value
            after = (basis, share, False) if known else ()
            if not state:
                return after, [(WAITS,)]
            return after, [(ANSWER, state[0], state[1:2] if state[2] else ())]
        if not state:
            return state, ()
        after, values = self.stepper.step(state[1], event)
        return (state[0], after, True), [(ROW, value) for value in values]


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
        delta = self._applied((changes, moved), frontier_us)
        return {self._sent(place, change): change for place, change in delta.items()}

    def _made_log(self, key: str, base: Checkpoint | None) -> RunLog:
        return RunLog(self._half, self._half.stepper, key, self.failures, base)

    def _shown(self, place: Place, event: Event[Any]) -> Event[Any]:
        """Return a published event in order as the scan steps it."""
        known, share = event.value
        if self._shares.is_share_constant:
            known, share = True, self._shares.empty
        return event._replace(name=SHARED, value=(known, share, basis_of(place, share)))

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


def _branched(deltas: Sequence[Delta], branches: Sequence[int]) -> Iterator[tuple[Place, Change]]:
    """Yield how the events of some sources change, where the union of all of them has them."""
    for branch, delta in zip(branches, deltas, strict=True):
        for place, change in delta.items():
            yield child_place(place, branch), change


@dataclass(slots=True)
class _Gathered:
    """What is known of an event in order."""

    event: Event[Any] | None = None
    answers: dict[str, PartAnswer] = field(default_factory=dict)
    mark: bytes = b""

    def whole(self, place: Place, stated: Mapping[str, GoneOn]) -> Event[Any] | None:
        """Return the event with all that is known of it, as the scan steps it."""
        if self.event is None:
            return None
        answers = tuple(
            tuple(answer.stating(stated.get(device, NOWHERE)))
            for device, answer in sorted(self.answers.items())
        )
        return self.event._replace(value=(self.event.value, answers, self.mark, place))


class GatherStage(StreamStage):
    """The events in order, each with the answers of devices and its mark.

    The value of an event is (value, answers, mark, place).

    Args:
        key: gives the key of an event.
        branches: of each event in order its number among the sources of the scan.
    """

    operator = "gather"

    def __init__(self, key: KeyOf | None, branches: Sequence[int]) -> None:
        super().__init__()
        self._key, self._branches = key, tuple(branches)
        self._found: dict[Place, _Gathered] = {}
        self._stated: dict[int, dict[str, GoneOn]] = {}
        self._of_cell: dict[int, set[Place]] = {}

    def push(self, deltas: Sequence[Delta], frontier_us: int | None = None) -> Delta:  # noqa: ARG002
        *events, answers, marks = deltas
        before: dict[Place, Event[Any] | None] = {}
        for place, (_, new) in _branched(events, self._branches):
            self._at(place, before).event = None if new is None else self._keyed(place, new)
        for at, (_, new) in answers.items():
            if not is_about_order(at):
                continue  # a row at a local event
            if is_of_cell(at):
                self._state(at[0], at[1], None if new is None else new.value, before)
                continue
            place = ordered_place(at)
            found = self._at(place, before).answers
            answer = None if new is None else part_answer(at[1], new.value)
            if answer is None:
                found.pop(at[1], None)
            else:
                found[at[1]] = answer
        for at, (_, new) in marks.items():
            place = ordered_place(at)
            self._at(place, before).mark = b"" if new is None else new.value
        return self._changed(before)

    def _at(self, place: Place, before: dict[Place, Event[Any] | None]) -> _Gathered:
        """Return what is known at a place, and remember what that was before."""
        found = self._found.get(place)
        if found is None:
            found = self._found[place] = _Gathered()
            self._of_cell.setdefault(cell_of(place[0]), set()).add(place)
        if place not in before:
            before[place] = self._whole(place, found)
        return found

    def _whole(self, place: Place, found: _Gathered) -> Event[Any] | None:
        return found.whole(place, self._stated.get(cell_of(place[0]), {}))

    def _state(
        self, cell_us: int, device: str, value: Any, before: dict[Place, Event[Any] | None]
    ) -> None:
        """Take from which shares of a cell a device has gone on."""
        for place in self._of_cell.get(cell_us, ()):
            self._at(place, before)
        self._stated.setdefault(cell_us, {})[device] = stated(value)

    def _keyed(self, place: Place, event: Event[Any]) -> Event[Any] | None:
        """Return an event with its key; None where its key is not known."""
        try:
            key = "" if self._key is None else self._key(event)
        except BaseException as error:  # noqa: BLE001 - a user's key may raise anything
            pass_interrupt(error)
            self.failures.note(place, error)
            return None
        self.failures.passed(place)
        return event._replace(key=key)

    def _changed(self, before: Mapping[Place, Event[Any] | None]) -> Delta:
        delta: Delta = {}
        for place, old in before.items():
            found = self._found[place]
            new = self._whole(place, found)
            if found == _Gathered():
                del self._found[place]
                self._of_cell[cell_of(place[0])].discard(place)
            if not same_event(old, new):
                delta[place] = (old, new)
        return delta

    def cut(self, time_us: int) -> dict[str, Any]:
        self._found = {place: each for place, each in self._found.items() if place[0] >= time_us}
        for cells in (self._stated, self._of_cell):
            for cell_us in [each for each in cells if each < time_us]:
                del cells[cell_us]
        return super().cut(time_us)


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
        joined, basis = state
        for _, made_of, made, *_ in answers:
            if made and self.joins(made_of, basis):
                joined = self._scan.join(joined, made[0])
        after, values = self._tried(joined, event._replace(value=value, key=""))
        share = self._scan.share(after)
        rows = [(ROW, each) for each in values]
        return (after, basis_of(place, share)), [*rows, (SHARE, share)]

    @staticmethod
    def joins(basis: bytes, current: bytes) -> bool:
        """Return whether a part was made of the share that counts."""
        return basis == current

    def _tried(self, state: Any, event: Event[Any]) -> Stepped:
        """Return what the scan's step gives; one that fails gives nothing, as anywhere."""
        try:
            after, values = self._stepper.step(state, event)
            check_plain((after, tuple(values)))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            return state, ()
        return after, values


class RootStage(ScanStage):
    """The half of a scan at an evaluator, over gathered events: its rows and its shares."""

    operator = "root"

    def __init__(
        self, scan: Synchronised[Any], name: str, stepper: Scan[Any] | None = None
    ) -> None:
        super().__init__(RootScan(scan, stepper), name, lambda event: event.key)


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
            for place, change in delta.items():
                old, new = (self._row(each) for each in change)
                if old is not None or new is not None:
                    found[place] = (old, new)
        return found

    def _row(self, event: Event[Any] | None) -> Event[Any] | None:
        if event is None or event.value[0] != ROW:
            return None
        _, value, time_us, device, tags, key = event
        return made_event((self._name, value[1], time_us, device, tags or NO_TAGS, key))
