"""What keeps a scan with local events from its rows, for people: parts that fail, and who holds it.

A part is refused where it cannot be joined (`lasp_edge.ordered.parted`). A scan **stands** at its
first open event in order, where the frontier has passed it for longer than answers take: some
device does not answer it, or by another share than the one that counts.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lasp_edge.ordered.answers import PartAnswer
from lasp_edge.ordered.gathering import Gathering, answers_at
from lasp_edge.ordered.parted import basis_of
from lasp_edge.ordered.places import Place


class RefusedPart(NamedTuple):
    """A part that cannot be joined.

    Attributes:
        time_us: of the event in order.
        device: whose part it is.
        why: what join raised.
    """

    time_us: int
    device: str
    why: str


def refused_parts(gathering: Gathering) -> Iterator[RefusedPart]:
    """Yield the parts that are refused at the last event in order of each key that is stepped."""
    if not gathering.lacks_any:
        return
    newest: dict[str, Place] = {}
    for place, record in gathering.records.items():
        if record.known:
            newest[record.key] = max(place, newest.get(record.key, place))
    for place in sorted(newest.values()):
        for device, why in gathering.records[place].failed:
            if device:
                yield RefusedPart(place[0], device, why)


def held_by(gathering: Gathering, time_us: int) -> tuple[str, ...]:
    """Return the devices that hold the events in order of a time, sorted."""
    places = [place for place in gathering.open if place[0] == time_us]
    devices = gathering.waited.promises
    return tuple(sorted({at for place in places for at in devices if _holds(gathering, place, at)}))


def _holds(gathering: Gathering, place: Place, device: str) -> bool:
    """Return whether a device has not answered an event in order, or not gone on from there."""
    record, basis = gathering.records[place], gathering.basis(place)
    if basis is None:
        return True
    answers = answers_at(gathering, place, basis)
    given = answers if isinstance(answers, PartAnswer) else answers.get(device)
    if given is None or not gathering.counts(given, basis):
        return True
    after = basis_of(place, record.share)
    return not (gathering.scan.is_share_constant or given.has_gone_on_from(after))
