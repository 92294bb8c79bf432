"""Gathering: which events in order all devices have answered, and what is published of them.

An evaluator keeps a record of each event in order: its key, the share behind it, and the basis with
which it is marked as whole. It looks again at the places that have changed, and at those behind
them whose basis follows from them; so a turn costs by what has changed.

- A place is **marked** once each device that counts has answered it by the basis that counts, or
  when nobody waits for it any longer. It stays so by that basis, whoever counts later; unless a
  device that counts answers by another one.
- A mark that is set without the answer of a device **lacks** it: one that counts and is not waited
  for, one that had answered by another basis and is gone, one that is over there, or one whose
  store was lost, so that its part may be without readings: who has lost them says so in its answer,
  or the evaluator knows. The rows there name these until they have answered; and those whose part
  is refused.
- A place is **open** while it is not marked, or a device that counts has not answered it so, or
  has not gone on from the share behind it, or has not promised since then what was final before:
  its promise waits for all that it has revised there; and until the frontier has passed it, since
  more devices may count until then. All before the first open place is settled: final is a prefix.

Answers are kept of open places alone: all have answered the others by the basis of their marks.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from crdts.frontier import BOTTOM_US
from lasp_edge.ordered.answers import PartAnswer, differs_from
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.parted import FIRST, basis_of, changes_at
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import same
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.protocol.lost_stores import touching


class OrderedRecord(NamedTuple):
    """An event in order, as an evaluator keeps and publishes it.

    Attributes:
        key: of the scan.
        known: the share behind it is known.
        share: it; None where it is not known.
        mark: the basis with which it is whole; b"" where it is not.
        answered: all devices that count have answered it by that basis.
        lacks: the devices without whose answer it is marked.
        failed: what failed there, with the reason: a device's part is refused; "": the scan's step.
    """

    key: str
    known: bool = False
    share: Any = None
    mark: bytes = b""
    answered: bool = False
    lacks: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()

    @property
    def missing(self) -> frozenset[str]:
        """The devices without whose part the event in order is stepped."""
        return frozenset(self.lacks).union(device for device, _ in self.failed if device)


class Waited(NamedTuple):
    """For whose answers an evaluator waits.

    Attributes:
        promises: of the devices that count; None of one that has not promised anything.
        due_us: nobody waits for answers at places before it; None: for all.
        absent: the devices that count, and that are not waited for.
        lost_us: device -> of which stretch of time it may lack readings.
        floor_us: no answer at a place before it is taken any more.
    """

    promises: Mapping[str, "Promised | None"] = MappingProxyType({})
    due_us: int | None = None
    absent: frozenset[str] = frozenset()
    lost_us: Mapping[str, tuple[int, int]] = MappingProxyType({})
    floor_us: int = BOTTOM_US


class Promised(NamedTuple):
    """The newest promise of a device.

    Attributes:
        incarnation, beats: of the life that has sent it, and the how manieth of it that is.
        low_us: nothing older will come from the device.
    """

    incarnation: int
    beats: int
    low_us: int


class Gathering:
    """The events in order of one scan.

    Args:
        scan: the scan.
        records: those that were stored.
        answers: of each device, at those that are not answered; see `answers_of`.

    Attributes:
        records: by place.
        changed: the places whose records have changed; whoever stores them clears it.
        news: those of them of which devices see something else; whoever publishes them clears it.
        completed_us: the times of places that lack a device no more; whoever looks clears it.
        lacks_any: some place lacks a device, or has lacked one.
        failures: what has failed since somebody took them out: a device, or "", and the reason.
        open: the places that are open, each with its answers, by device or one of all.
        waited: for whose answers it waits.
    """

    def __init__(
        self,
        scan: Synchronised[Any],
        records: Mapping[Place, OrderedRecord] | None = None,
        answers: Mapping[Place, Mapping[str, PartAnswer]] | None = None,
    ) -> None:
        self.scan = scan
        self.records = dict(records or {})
        self._of_key: dict[str, list[Place]] = {}
        for place, record in sorted(self.records.items()):
            self._of_key.setdefault(record.key, []).append(place)
        self.open: dict[Place, Mapping[str, PartAnswer] | PartAnswer] = {
            place: (answers or {}).get(place, {})
            for place, record in self.records.items()
            if not record.answered
        }
        self._touched = set(self.open)
        self.waited = Waited()
        self._frontier_us: int | None = None
        self._unpromised: set[Place] = set()
        self._unpassed: set[Place] = set()
        self.changed: set[Place] = set()
        self.news: set[Place] = set()
        self.completed_us: set[int] = set()
        self.lacks_any = any(record.missing for record in self.records.values())
        self.failures: list[tuple[str, str]] = []

    def take(self, gathered: Delta, root: Delta) -> None:
        """Take how the events in order, their answers and the outputs of the root have changed."""
        for place, (_, new) in gathered.items():
            before = self.records.get(place)
            if before is not None and (new is None or new.key != before.key):
                self._remove(place, before.key)
            if new is None:
                continue
            if place not in self.records:
                self.records[place] = OrderedRecord(new.key)
                self.changed.add(place)
                self.news.add(place)
                insort(self._of_key.setdefault(new.key, []), place)
                self._touch_beside(place)
            _, answers, mark, _ = new.value
            self.open[place] = {answer[0]: PartAnswer(*answer) for answer in answers}
            self._touched.add(place)
            self._put(place, self.records[place]._replace(mark=mark, answered=False))
        self._take_shares(root)

    def _take_shares(self, root: Delta) -> None:
        for place, change in changes_at(root).items():
            record = self.records.get(place)
            if record is None:
                continue
            if change.share is not None and not same(record[1:3], change.share):
                if place not in self.open:  # all have gone on from the share before
                    self.open[place] = _answer_of_all(place, record)
                known, share = change.share
                self._put(place, record._replace(known=known, share=share, answered=False))
                self._touched.add(place)
                self._touch_behind(place)
            after = self.records[place]._replace(failed=change.failed_after(record.failed))
            self.failures += sorted(set(after.failed).difference(record.failed))
            if not after.missing >= record.missing:
                self.completed_us.add(place[0])
            self.lacks_any |= bool(after.missing)
            self._put(place, after)

    def _put(self, place: Place, record: OrderedRecord) -> None:
        before = self.records[place]
        if before is not record and not same(before, record):
            self.records[place] = record
            self.changed.add(place)
            if not self.scan.is_share_constant and not same(before[1:3], record[1:3]):
                self.news.add(place)

    def _remove(self, place: Place, key: str) -> None:
        self._touch_beside(place)
        self._of_key[key].remove(place)
        del self.records[place]
        self._let_go(place)
        self.changed.add(place)
        self.news.add(place)

    def _let_go(self, place: Place) -> None:
        """Look at a place no more."""
        self.open.pop(place, None)
        for places in (self._touched, self._unpromised, self._unpassed):
            places.discard(place)

    def _touch_beside(self, place: Place) -> None:
        """Look again behind a place that comes or goes; the one before is needed until another."""
        self._touch_behind(place)
        of_key = self._of_key[self.records[place].key]
        self.changed |= set(of_key[(at := bisect_left(of_key, place)) - 1 : at])

    def _touch_behind(self, place: Place) -> None:
        """Look again at the place behind another one of its key: its basis may have changed."""
        behind = _behind(self._of_key[self.records[place].key], place)
        if behind is not None:
            self._touched.add(behind)
            record = self.records[behind]
            if behind not in self.open:
                self.open[behind] = _answer_of_all(behind, record)
            self._put(behind, record._replace(answered=False))

    def basis(self, place: Place) -> bytes | None:
        """Return the basis that counts at a place; None where it is not known yet."""
        of_key = self._of_key[self.records[place].key]
        at = bisect_left(of_key, place)
        if not at:
            return FIRST
        before = of_key[at - 1]
        if self.scan.is_share_constant:
            return basis_of(before, self.scan.empty)
        record = self.records[before]
        return basis_of(before, record.share) if record.known else None

    def marks(self, waited: Waited, frontier_us: int | None = None) -> dict[Place, bytes]:
        """Return the marks that are to be set, and those that are to be taken back (b"").

        Args:
            waited: for whose answers.
            frontier_us: all that count had promised until then.
        """
        before, self.waited = self.waited, waited
        is_alike = (waited.due_us, waited.floor_us) == (before.due_us, before.floor_us)
        if not is_alike or waited.promises.keys() != before.promises.keys():
            self._touched |= self.open.keys()
        elif waited.promises != before.promises or frontier_us != self._frontier_us:
            self._touched |= self._unpromised
        self._touched |= {place for place in self._unpassed if _has_passed(frontier_us, place)}
        self._frontier_us = frontier_us
        touched, self._touched = self._touched, set()
        found: dict[Place, bytes] = {}
        for place in touched:
            mark = self._marked(place)
            if mark != self.records[place].mark:
                found[place] = mark
        return found

    def _marked(self, place: Place) -> bytes:
        """Return the mark that a place is to have, and let it be open or not."""
        record, basis = self.records[place], self.basis(place)
        self._unpromised.discard(place)
        self._unpassed.discard(place)
        if basis is None:
            return record.mark
        promises, due_us = self.waited[:2]
        answers = self.open.get(place)
        if answers is None:
            answers = _answer_of_all(place, record)
        given = [
            answers._replace(device=each) if isinstance(answers, PartAnswer) else answers.get(each)
            for each in promises
        ]
        is_answered = bool(given) and all(self.counts(each, basis) for each in given)
        is_over = place[0] < self.waited.floor_us
        if is_answered or is_over or (due_us is not None and place[0] < due_us):
            record = self._lacking(place, record, basis, answers)
            if (is_answered or is_over) and record.mark == basis and record.known:
                left = [] if is_over else [each for each in given if each is not None]
                self._close(place, record, left)
            return basis
        is_contradicted = any(each is not None and not each.counts(basis) for each in given)
        return b"" if record.mark == basis and is_contradicted else record.mark

    def _lacking(
        self,
        place: Place,
        record: OrderedRecord,
        basis: bytes,
        answers: Mapping[str, PartAnswer] | PartAnswer,
    ) -> OrderedRecord:
        """Return the record of a place that is whole, with those without whose answer it is so."""
        promises, _, absent, lost_us, _ = self.waited
        known, is_new = absent.union(record.lacks), record.mark != basis
        if isinstance(answers, PartAnswer):  # of all, but for those that it lacked
            lacks = known.union(promises) if is_new else set(record.lacks)
        else:
            # Who has answered the next one had answered this one, too, if it had been there.
            behind = self.open.get(_behind(self._of_key[record.key], place) or place)
            known = known.union(promises, answers, behind if isinstance(behind, dict) else ())
            given = [each for each in answers.values() if each.basis == basis]
            lacks = known.difference(each.device for each in given if not each.is_incomplete)
        if lost_us:
            of_key = self._of_key[record.key]
            before = of_key[(at := bisect_left(of_key, place)) - 1 : at]
            lost = touching(lost_us.items(), before[0][0] if before else BOTTOM_US, place[0] + 1)
            lacks |= lost if is_new else lost.intersection(record.lacks)
        if lacks == set(record.lacks):
            return record
        if not lacks.issuperset(record.lacks):
            self.completed_us.add(place[0])
        self.lacks_any = True
        self._put(place, record._replace(lacks=tuple(sorted(lacks))))
        return self.records[place]

    def _close(self, place: Place, record: OrderedRecord, given: list[PartAnswer]) -> None:
        """Let a whole place be open no longer, if all have gone on, and promised past it since."""
        if not self.scan.is_share_constant:
            basis = basis_of(place, record.share)
            if not all(each.has_gone_on_from(basis) for each in given):
                return
        if not all(map(self.is_promised, given)):
            self._unpromised.add(place)
            return
        if not _has_passed(self._frontier_us, place):
            self._unpassed.add(place)
            return
        self.open.pop(place, None)
        self._put(place, record._replace(answered=True))

    @staticmethod
    def counts(given: PartAnswer | None, basis: bytes) -> bool:
        """Return whether an answer was made of the share that counts, or no other will come."""
        return given is not None and given.counts(basis)

    def is_promised(self, given: PartAnswer) -> bool:
        """Return whether a device has promised what was final, since it has given an answer."""
        promised = self.waited.promises[given.device]
        if promised is None or promised[:2] <= (given.incarnation, given.beats):
            return False
        return self._frontier_us is None or promised.low_us >= self._frontier_us

    def settled_us(self, frontier_us: int) -> int:
        """Return the time before which all is settled, under a frontier."""
        first = min(self.open, default=None)
        return frontier_us if first is None else min(frontier_us, first[0])

    @property
    def unanswered_us(self) -> int | None:
        """The time of the first event in order, while no device has answered any; else None."""
        is_answered = any(each.mark for each in self.records.values()) or any(self.open.values())
        return None if is_answered else min([place[0] for place in self.records], default=None)

    def needed_until_us(self, place: Place) -> int:
        """Return until when an event in order is needed: the basis of the next of its key names it.

        Once nothing before that time is taken any more, it may go.
        """
        behind = _behind(self._of_key[self.records[place].key], place)
        return FOR_EVER_US if behind is None else behind[0] + 1

    def forget(self, below_us: int) -> None:
        """Let go the events in order before a time, but for the last one of each key.

        Nobody answers there any more, so no place is open.
        """
        for key, of_key in self._of_key.items():
            count = bisect_left(of_key, (below_us, "", (), ()))
            for place in of_key[:count]:
                self._let_go(place)
            for place in of_key[: max(0, count - 1)]:
                del self.records[place]
            self._of_key[key] = of_key[max(0, count - 1) :]

    def asked(self) -> set[Place]:
        """Return the places where devices may lack a share: of others they have gone on from it.

        Those are the open ones that lack more than promises, and those before them. Where the share
        is always the same, who has answered a place by the basis that counts lacks nothing; who has
        done so by another one may not know the place before, if its store was lost.
        """
        unanswered = self.open.keys() - self._unpromised - self._unpassed
        found = set(unanswered)
        for place in unanswered:
            if not self.scan.is_share_constant or differs_from(self.open[place], self.basis(place)):
                of_key = self._of_key[self.records[place].key]
                at = bisect_left(of_key, place)
                found |= set(of_key[max(0, at - 1) : at])
        return found


def _behind(of_key: list[Place], place: Place) -> Place | None:
    """Return the place of a key behind another one; None behind the last one."""
    at = bisect_left(of_key, place) + 1
    return of_key[at] if at < len(of_key) else None


def _answer_of_all(place: Place, record: OrderedRecord) -> PartAnswer:
    """Return what each device has answered at a place that is not open."""
    return PartAnswer("", record.mark, (), basis_of(place, record.share))


def _has_passed(frontier_us: int | None, place: Place) -> bool:
    return frontier_us is not None and place[0] < frontier_us
