"""Parts: a synchronised scan as two scans, one on each device and one at an evaluator.

A device steps its own events from a share, and has a part at each event in order: what it has made
of the share since the one before. The evaluator joins the parts that were made of the share which
counts, steps the event in order, and publishes the share of the state behind it. Both run on the
engine of all scans, so a late event of either kind is replayed from its place.

- The **basis** of a part names the share that it was made of. Only parts of the basis that counts
  are joined: where a share is revised, some devices have not seen that yet.
- A place is **whole** if each device that counts has a part of that basis there, or has answered
  that it has none. Behind a place that is not whole nothing is known.
- The **progress** of a device is the last place that it has answered and the **chain** there: a
  digest of all places up to it and their bases. It is content, so any evaluator can compare it with
  its own chain. It reaches only to what has arrived where it is reported.
- All before the first place that is not whole, or that a device has not answered so, is
  **settled**: final is a prefix.

Law: once all is exchanged, the rows of devices and of each evaluator are those of the scan over all
events in one order (the theorem of `synchronised`).

It is the calculation alone. No agent or gateway runs it yet, and `local=` is refused.

Source: Flumina (`synchronised`), without its tree of workers and its mailboxes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from lasp_edge.errors import pass_interrupt
from lasp_edge.event import Event
from lasp_edge.ordered.deltas import Delta, minus
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.plain import check_plain, encoded
from lasp_edge.ordered.scan import Scan, Stepped
from lasp_edge.ordered.stages import ScanStage
from lasp_edge.ordered.synchronised import Synchronised

FIRST: Final = b"first"
"""The basis of the share of the first state."""
NOWHERE: Final[Place] = (-(2**62), "", (), ())
"""Before all places."""
_ROW, _PART, _SHARE = "row", "part", "share"
_SHARED = ""
"""The name of what an evaluator publishes of a place, as a device's scan sees it; events have other
names."""
_DIGEST_BYTES = 8


class SharedPlace(NamedTuple):
    """An event in order, as an evaluator publishes it.

    Attributes:
        key: of the scan.
        known: the share behind it is known.
        share: it; None where it is not known.
    """

    key: str
    known: bool
    share: Any


class MadePart(NamedTuple):
    """What a device has made of a share up to an event in order.

    Attributes:
        version: the greatest of a device counts.
        basis: of the share; None: the device has made nothing there any more.
        state: what it has made.
    """

    version: int
    basis: bytes | None
    state: Any


_NO_PART = MadePart(0, None, None)


class Answered(NamedTuple):
    """How far a device has answered: the last place, and the chain up to it."""

    place: Place = NOWHERE
    chain: bytes = b""


def _digest(value: Any) -> bytes:
    return sha256(encoded(value)).digest()[:_DIGEST_BYTES]


def _basis(scan: Synchronised[Any], place: Place, share: Any) -> bytes:
    """Return what names the share at a place; one for all places where it is always the same."""
    return _digest(scan.empty if scan.is_share_constant else (*place, share))


def _chains(scan: Synchronised[Any], places: Mapping[Place, SharedPlace]) -> Iterator[Answered]:
    """Yield each place with the chain up to it; to the first whose parts have no basis yet."""
    bases: dict[str, bytes | None] = {}
    chain = b""
    for place, (key, known, share) in sorted(places.items()):
        basis = bases.get(key, FIRST)
        if basis is None:
            return
        chain = _digest((chain, *place, basis))
        yield Answered(place, chain)
        bases[key] = _basis(scan, place, share) if known or scan.is_share_constant else None


class LeafScan(Scan[Any]):
    """A device's half: its events, and the published places.

    The state is (basis, what was made of the share, whether anything was); () while it waits.
    """

    name = "leaf"

    def __init__(self, scan: Synchronised[Any]) -> None:
        self._scan = scan
        self.zero = (FIRST, scan.share(scan.zero), False)

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        if event.name == _SHARED:
            known, share, basis = event.value
            part = [(_PART, *state[:2])] if state and state[2] else []
            return (basis, share, False) if known else (), part
        if not state:
            return state, ()
        after, values = self._scan.step(state[1], event)
        return (state[0], after, True), [(_ROW, value) for value in values]


class RootScan(Scan[Any]):
    """An evaluator's half: events in order, each with the parts there and whether it is whole.

    The state is (state of the scan, basis of its share); () behind a place that is not whole.
    """

    name = "root"

    def __init__(self, scan: Synchronised[Any]) -> None:
        self._scan = scan
        self.zero = (scan.zero, FIRST)

    def step(self, state: Any, event: Event[Any]) -> Stepped:
        value, parts, is_whole, place = event.value
        if not state or not is_whole:
            return (), ()
        joined, basis = state
        for part_basis, part in parts:
            if self.joins(part_basis, basis):
                joined = self._scan.join(joined, part)
        after, values = self._tried(joined, event._replace(value=value))
        share = self._scan.share(after)
        rows = [(_ROW, each) for each in values]
        return (after, _basis(self._scan, place, share)), [*rows, (_SHARE, share)]

    @staticmethod
    def joins(basis: bytes, current: bytes) -> bool:
        """Return whether a part was made of the share that counts."""
        return basis == current

    def _tried(self, state: Any, event: Event[Any]) -> Stepped:
        """Return what the scan's step gives; one that fails gives nothing, as anywhere."""
        try:
            after, values = self._scan.step(state, event)
            check_plain((after, tuple(values)))
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            pass_interrupt(error)
            return state, ()
        return after, values


class DeviceHalf:
    """A device: what it has read and was published, and what follows.

    Args:
        scan: the scan.
        key: gives the key of an event.
        items: its own local events.
        parts: those that it has reported, of its earlier lives too.

    Attributes:
        items: place -> local event.
        rows: place -> value: the outputs at its own events.
        parts: place of an event in order -> its part there.
    """

    def __init__(
        self,
        scan: Synchronised[Any],
        key: Callable[[Event[Any]], str] | None = None,
        items: Mapping[Place, Event[Any]] | None = None,
        parts: Mapping[Place, MadePart] | None = None,
    ) -> None:
        self._scan, self._key = scan, key
        self._stage = ScanStage(LeafScan(scan), "leaf", self._key_of)
        self.items: dict[Place, Event[Any]] = dict(items or {})
        self.parts: dict[Place, MadePart] = dict(parts or {})
        self.rows: dict[Place, Any] = {}
        self._made: dict[Place, tuple[bytes, Any]] = {}
        self._content: dict[Place, Event[Any]] = {}
        self._chains: list[Answered] = [Answered()]
        self._version = max([part.version for part in self.parts.values()], default=0)

    def _key_of(self, event: Event[Any]) -> str:
        return event.key if event.name == _SHARED or self._key is None else self._key(event)

    def evaluate(self, places: Mapping[Place, SharedPlace]) -> set[Place]:
        """Take what was read since, and the places as they are published now.

        Returns:
            The places at which its part has changed.
        """
        content = dict(self.items)
        for place, (key, known, share) in places.items():
            value = (known, share, _basis(self._scan, place, share))
            if self._scan.is_share_constant:
                value = (True, self._scan.empty, value[2])
            content[place] = Event(_SHARED, value, place[0], "", {}, key)
        delta, self._content = minus(content, self._content), content
        _taken(self._stage.push([delta]) if delta else {}, self.rows, _PART, self._made)
        self._chains = [Answered(), *_chains(self._scan, places)]
        return set(self._changed_parts(self._chains[-1].place))

    def _changed_parts(self, until: Place) -> Iterator[Place]:
        """Change the parts at places that were walked past.

        While a share is not known, again, nothing behind it is taken back.
        """
        for place in sorted(self._made.keys() | self.parts.keys()):
            if self.waits(place, until):
                return
            made = self._made.get(place, (None, None))
            if made != self.parts.get(place, _NO_PART)[1:]:
                self._version += 1
                self.parts[place] = MadePart(self._version, *made)
                yield place

    @staticmethod
    def waits(place: Place, until: Place) -> bool:
        """Return whether a place lies behind the last one that was walked past."""
        return place > until

    def progress(self, missing: Iterable[Place]) -> Answered:
        """Return how far it has answered a sink, at which its parts at some places are missing."""
        first = min(missing, default=None)
        if first is None:
            return self._chains[-1]
        return max(each for each in self._chains if each.place < first)


class EvaluatorHalf:
    """An evaluator: the events in order, the parts of devices, and what follows.

    Args:
        scan: the scan.
        key: gives the key of an event.
        whole: the places that were whole, as it has stored them.

    Attributes:
        is_followed: devices follow its places, so it waits for their answers. Another evaluator
            takes a device without a part for one that has none, until the chains say otherwise:
            devices have answered by shares that it can only work out.
        items: place -> event in order.
        parts: place -> device -> its newest part.
        progress: device -> how far it has answered.
        places: what it publishes.
        rows: place -> value.
        whole: place -> the basis with which it was whole.
    """

    def __init__(
        self,
        scan: Synchronised[Any],
        key: Callable[[Event[Any]], str] | None = None,
        whole: Mapping[Place, bytes] | None = None,
    ) -> None:
        self._scan, self._key, self.is_followed = scan, key, True
        self._stage = ScanStage(RootScan(scan), "root", lambda event: event.key)
        self.items: dict[Place, Event[Any]] = {}
        self.parts: dict[Place, dict[str, MadePart]] = {}
        self.progress: dict[str, Answered] = {}
        self.rows: dict[Place, Any] = {}
        self.whole: dict[Place, bytes] = dict(whole or {})
        self._shares: dict[Place, Any] = {}
        self._content: dict[Place, Event[Any]] = {}

    def take(self, device: str, parts: Mapping[Place, MadePart]) -> None:
        """Take parts of a device; the newest version of each place counts."""
        for place, part in parts.items():
            of_place = self.parts.setdefault(place, {})
            if self.is_newer(part, of_place.get(device)):
                of_place[device] = part

    @staticmethod
    def is_newer(part: MadePart, known: MadePart | None) -> bool:
        """Return whether a part replaces the one that is known."""
        return known is None or part.version > known.version

    @property
    def places(self) -> dict[Place, SharedPlace]:
        """What is published: each event in order, with the share behind it where it is known."""
        return {
            place: SharedPlace(self._key_of(event), place in self._shares, self._shares.get(place))
            for place, event in self.items.items()
        }

    def _key_of(self, event: Event[Any]) -> str:
        return "" if self._key is None else self._key(event)

    def evaluate(self, devices: Iterable[str]) -> None:
        """Step all events in order as far as they are whole; `devices`: those that count."""
        counting = sorted(devices)
        for _ in range(len(self.items) + 2):  # a share may make the next place whole
            content = self._walked(counting)
            delta, self._content = minus(content, self._content), content
            if not delta:
                return
            _taken(self._stage.push([delta]), self.rows, _SHARE, self._shares)

    def _walked(self, devices: list[str]) -> dict[Place, Event[Any]]:
        """Return what the scan steps: each event with its parts, and whether it is whole."""
        found, bases = dict[Place, Event[Any]](), dict[str, bytes | None]()
        chains = dict(_chains(self._scan, self.places))
        for place, event in sorted(self.items.items()):
            key = self._key_of(event)
            basis, of_place = bases.get(key, FIRST), self.parts.get(place, {})
            is_whole = basis is not None and self._is_whole(place, basis, devices, chains)
            parts = tuple((p.basis, p.state) for _, p in sorted(of_place.items()) if p.basis)
            value = event.value, parts, is_whole, place
            found[place] = event._replace(value=value, key=key)
            known = is_whole and place in self._shares
            bases[key] = _basis(self._scan, place, self._shares[place]) if known else None
        return found

    def _is_whole(
        self, place: Place, basis: bytes, devices: list[str], chains: Mapping[Place, bytes]
    ) -> bool:
        """Return whether all that count have answered a place; once so, it stays so."""
        of_place = self.parts.get(place, {})
        parts = [of_place.get(device, _NO_PART) for device in devices]
        if not all(part.basis is None or RootScan.joins(part.basis, basis) for part in parts):
            return False
        silent = [d for d, part in zip(devices, parts, strict=True) if part.basis is None]
        if all(self._answered(device, place, chains) for device in silent):
            self.whole[place] = basis
        return self.whole.get(place) == basis or not self.is_followed

    def _answered(self, device: str, place: Place, chains: Mapping[Place, bytes]) -> bool:
        return self.agrees(self.progress.get(device, Answered()), place, chains)

    @staticmethod
    def agrees(progress: Answered, place: Place, chains: Mapping[Place, bytes]) -> bool:
        """Return whether a device has answered a place, by the shares as they are known here."""
        return progress.place >= place and chains.get(progress.place) == progress.chain

    def settled(self, frontier_us: int, devices: Iterable[str]) -> Place:
        """Return the place before which all is final; `devices`: those that count."""
        counting = list(devices)
        chains = dict(_chains(self._scan, self.places))
        for place in sorted(self.items):
            if place[0] >= frontier_us:
                break
            answered = all(self._answered(device, place, chains) for device in counting)
            if place not in self._shares or not answered:
                return place
        return frontier_us, "", (), ()


def _taken(delta: Delta, rows: dict[Place, Any], kind: str, of_event: dict[Place, Any]) -> None:
    """Take how the outputs of a half change: rows at their places, a kind at its event's."""
    for place, (old, _) in delta.items():
        if old is not None:
            if old.value[0] == kind:
                of_event.pop((*place[:3], place[3][:-1]), None)
            else:
                rows.pop(place, None)
    for place, (_, new) in delta.items():
        if new is not None:
            if new.value[0] == kind:
                found = new.value[1:]
                of_event[(*place[:3], place[3][:-1])] = found if len(found) > 1 else found[0]
            else:
                rows[place] = new.value[1]
