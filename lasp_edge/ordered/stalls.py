"""Why a scan with local events has no new rows: parts that fail, and devices that hold it.

A part is refused where it cannot be joined (`lasp_edge.ordered.parted`). A scan **stands** at the
first event in order that a device **holds** for longer than answers take, though the frontier has
passed it: it does not answer, or by another share than the one that counts.
"""

from collections.abc import Iterator
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from lasp_edge.ordered.answers import PartAnswer
from lasp_edge.ordered.gathering import Gathering
from lasp_edge.ordered.parted import basis_of
from lasp_edge.ordered.places import Place


class RefusedPart(NamedTuple):
    """A part that cannot be joined.

    Attributes:
        since_us: of the first event in order since which all parts of that device are refused.
        device: whose part it is.
        why: what join raised at the last one.
    """

    since_us: int
    device: str
    why: str


def refused_parts(gathering: Gathering) -> Iterator[RefusedPart]:
    """Yield the parts that are refused at the last event in order of each key that is stepped."""
    if not gathering.lacks_any:
        return
    places: dict[str, list[Place]] = {}
    for place, record in sorted(gathering.records.items(), reverse=True):
        if record.known:
            places.setdefault(record.key, []).append(place)
    for newest, *before in sorted(places.values()):
        for device, why in gathering.records[newest].failed:
            if device:
                failed = takewhile(partial(_is_refused, gathering, device), before)
                yield RefusedPart(min((newest, *failed))[0], device, why)


def _is_refused(gathering: Gathering, device: str, place: Place) -> bool:
    return device in dict(gathering.records[place].failed)


class HeldPlace(NamedTuple):
    """An event in order that devices hold: they have not answered it, or not gone on from there.

    Attributes:
        time_us: of the event.
        devices: those that hold it, sorted.
    """

    time_us: int
    devices: tuple[str, ...]


def first_held(gathering: Gathering, before_us: int) -> HeldPlace | None:
    """Return the first event in order before a time that devices hold, if there is one."""
    for place in sorted(gathering.open):
        if place[0] >= before_us:
            break
        if devices := tuple(sorted(_holding(gathering, place))):
            return HeldPlace(place[0], devices)
    return None


def _holding(gathering: Gathering, place: Place) -> Iterator[str]:
    """Yield the devices that have not answered an event in order, or not gone on from there."""
    record, basis, answers = gathering.records[place], gathering.basis(place), gathering.open[place]
    after = None if gathering.scan.is_share_constant else basis_of(place, record.share)
    for device in gathering.waited.promises:
        given = answers if isinstance(answers, PartAnswer) else answers.get(device)
        goes_on = given is not None and basis is not None and gathering.counts(given, basis)
        if goes_on and given is not None and after is not None:
            goes_on = given.has_gone_on_from(after)
        if not goes_on:
            yield device
