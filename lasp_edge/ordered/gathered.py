"""Gathered events: those in order, each with the answers of devices and its mark.

What a device states of a cell of events in order goes with its answers at each of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.ordered.answers import (
    NOWHERE,
    OVER,
    GoneOn,
    PartAnswer,
    is_incomplete,
    is_of_cell,
    part_answer,
    standing,
    stated,
)
from lasp_edge.ordered.cells import cell_of
from lasp_edge.ordered.deltas import Change, Delta, same_event
from lasp_edge.ordered.parted import is_about_order, ordered_place
from lasp_edge.ordered.places import Place, child_place
from lasp_edge.ordered.stages import KeyOf, StreamStage


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
    incomplete: dict[str, PartAnswer] = field(default_factory=dict)
    mark: bytes = b""

    def whole(self, place: Place, stated: Mapping[str, GoneOn]) -> Event[Any] | None:
        """Return the event with all that is known of it, as the scan steps it."""
        if self.event is None:
            return None
        answers = tuple(
            tuple(answer.stating(stated.get(device, NOWHERE)))
            for device, answer in sorted(self.counting(stated).items())
        )
        return self.event._replace(value=(self.event.value, answers, self.mark, place))

    def counting(self, stated: Mapping[str, GoneOn]) -> dict[str, PartAnswer]:
        """Return the answer of each device that counts; of who is over perhaps an empty one."""
        found = {at: PartAnswer(at, b"", ()) for at, each in stated.items() if each.bases == OVER}
        found |= self.answers
        for device, answer in self.incomplete.items():
            found[device] = standing(found.get(device), answer)
        return found


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
            gathered = self._at(place, before)
            found = gathered.incomplete if is_incomplete(at[3]) else gathered.answers
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
        """Return the record at a place, and remember it as it was before."""
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


def answers_of(
    content: Mapping[Place, Any], ordered: Iterable[Place] = ()
) -> Iterator[tuple[Place, PartAnswer]]:
    """Yield the answers that count among outputs of devices, each with the event in order.

    Args:
        content: the outputs, of whole cells.
        ordered: the events in order at which a device may be over that has answered none.
    """
    of_cell: dict[int, dict[str, GoneOn]] = {}
    for at, each in content.items():
        if is_of_cell(at):
            of_cell.setdefault(at[0], {})[at[1]] = stated(each.value)
    places: dict[Place, _Gathered] = {place: _Gathered() for place in ordered}
    for at, event in content.items():
        answer = part_answer(at[1], event.value) if is_about_order(at) else None
        if answer is not None:
            here = places.setdefault(ordered_place(at), _Gathered())
            (here.incomplete if is_incomplete(at[3]) else here.answers)[at[1]] = answer
    for place, here in places.items():
        of_devices = of_cell.get(cell_of(place[0]), {})
        for device, answer in here.counting(of_devices).items():
            yield place, answer.stating(of_devices.get(device, NOWHERE))
