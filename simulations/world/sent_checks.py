"""What must hold of each message that a sink's process sends: it says what is durable there.

- an acknowledgement names its sink and store, its clock, and the commit after which it was sent
- of a gateway's store it names those before it, unless its device has named the present one since
  it asked last who it was
- the gateway's own topic shows how far windows are final, how many devices count, and who of them
  is not waited for, as its last turn left it; and no clock that its device states no more;
  it names no retired device, and no failure without a cause, and each source that holds a device
- a window's topic shows rows that are durable, the newest revision of each, all of it as it is kept
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from lasp_edge.language.declarations import Window
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.frontier import CLOCKS_DIFFER_US
from lasp_edge.protocol.sinks import store_tag
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.topics import Topics
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US
from simulations.world.landed import LandedState
from simulations.world.landing import SinkMessage, VirtualSink

_OF_CLOCKS = "timedatectl"
"""Stands in the words for clocks that contradict each other."""
_SPARE_S = 4
"""Seconds until a gateway has taken what it hears, at most."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OTHER_ROW = "tentative"
"""The field of a shown row that is another row."""
_LISTENS = ("listening", "is called")
"""Stand in the words of a gateway that does not say for whom it waits."""


def wrong_answer(
    sink: VirtualSink[Any], frame: AckFrame, store: str, wall_us: int, commits: tuple[int, int]
) -> Iterator[str]:
    """Yield what is wrong in an acknowledgement.

    Args:
        sink: whose process sends it.
        frame: the acknowledgement.
        store: the id of its store.
        wall_us: its clock.
        commits: how many were made under this id, of a gateway; and the number of a lake's last.
    """
    number = frame.number if commits[0] else 0
    stated = (frame.sink, frame.store, number, frame.commit, frame.clock_s)
    known = (sink.sink, store, *commits, wall_us // SECOND_US)
    if stated != known:
        yield f"{sink.name} answers {frame.about} by {stated}, and it is {known}"


def unnamed_stores(sink: VirtualSink[Any], frame: AckFrame) -> Iterator[str]:
    """Yield that a gateway's acknowledgement does not name the stores from which its own follows.

    Args:
        sink: a gateway, whose store follows from others.
        frame: the acknowledgement.
    """
    began = sink.hellos.get(frame.about)
    began = None if began is not None and began > sink.second - _SPARE_S else began
    named = sink.named.get((frame.about, store_tag(frame.store)))
    if not frame.former and (named is None or (began is not None and named < began)):
        yield f"{sink.name} does not name the stores before its own, which {frame.about} may know"


class ShownWatch:
    """Looks at what a gateway publishes for people.

    Args:
        topics: of the fleet.
    """

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._windows: dict[str, tuple[str, str]] = {}

    def wrong(
        self, sink: VirtualSink[Any], lander: LandedState, message: SinkMessage
    ) -> Iterator[str]:
        """Yield what a message for people shows that is not so."""
        if not message.payload or message.frame is not None:
            return
        if message.topic == self._topics.gateway(sink.sink):
            yield from _wrong_standing(sink, lander, json.loads(message.payload))
            return
        at = self._window_of(sink.sink, lander, message.topic)
        if at is not None:
            shown = json.loads(message.payload)
            rows = [shown, *([shown["tentative"]] if "tentative" in shown else [])]
            for each in rows:
                yield from _wrong_row(sink.name, lander, at, each)

    def _window_of(self, sink: str, lander: LandedState, topic: str) -> tuple[str, str] | None:
        """Return the window and key of a topic; None of what is no window's."""
        if topic not in self._windows:
            for at in lander.kept.revisions:
                window = lander.plan.windows.get(at.window)
                if window is not None:
                    key = at.key if window.keyed else None
                    self._windows[self._topics.result(at.window, sink, key)] = at[:2]
        return self._windows.get(topic)


def _wrong_row(
    name: str, lander: LandedState, at: tuple[str, str], shown: Mapping[str, Any]
) -> Iterator[str]:
    window = lander.plan.windows[at[0]]
    start_us = (datetime.fromisoformat(shown["start"]) - _EPOCH) // timedelta(microseconds=1)
    rows = lander.kept.revisions.get(WindowStart(*at, start_us))
    if rows is None:
        yield f"{name} shows {shown} of {at}, and has no such row"
        return
    row = rows[-1]
    if row.stream != window.stream:
        return
    columns = zip(window.fold.columns_named, row.partial, strict=True)
    expected = {n: part.hex() if isinstance(part, bytes) else part for n, part in columns}
    expected |= _fields(row)
    expected["parts"] = _parts(window, row, shown["parts"])
    found = {field: value for field, value in shown.items() if field != _OTHER_ROW}
    if found != expected:
        yield f"{name} shows {found} of {at}, and has {expected}"


def _parts(window: Window, row: FleetRow, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parts of a row; as they are shown, where they are not recomputed."""
    columns = dict(zip(window.fold.columns_named, row.partial, strict=True))
    step = window.resolution.exact
    if columns.keys() == {"count", "total_q"}:
        count = columns["count"]
        return {"mean": float(columns["total_q"] * step / count) if count else None}
    if columns.keys() == {"max_q"}:
        return {"max": float(columns["max_q"] * step)}
    return shown


def _fields(row: FleetRow) -> dict[str, Any]:
    """Return how a row is shown beside its value."""
    missing = list(row.excluded)
    is_open = row.status == TENTATIVE
    return {
        "start": _moment(row.at.start_us),
        "end": _moment(row.end_us),
        "status": row.status,
        "revision": row.revision,
        "devices": row.devices_in,
        "expected": row.devices_expected,
        "except": [] if is_open else missing,
        **({"waiting_for": missing} if is_open else {}),
    }


def _wrong_standing(
    sink: VirtualSink[Any], lander: LandedState, shown: Mapping[str, Any]
) -> Iterator[str]:
    state = lander.kept.state
    known = state.promises.entries if sink.terms.roster is None else sink.terms.roster
    expected = sorted({*known} - state.membership.retired.keys())
    frontier_us = state.frontier_us
    right = {
        "online": True,
        "final_up_to": None if frontier_us is None else _moment(frontier_us),
        "devices": len(expected),
        "program": lander.plan.digest,
    }
    found = {name: shown.get(name) for name in right}
    if found != right:
        yield f"{sink.name} shows {found}, and it is {right}"
    if any(_OF_CLOCKS in words for words in shown["waiting"]) and not _are_clocks_apart(sink):
        yield f"{sink.name} shows {shown['waiting']}, and no device states such a clock"
    yield from _wrong_words(sink, lander, expected, shown)
    silent = silent_devices(sink, lander, expected)
    if silent is not None and shown["except"] != silent:
        yield f"{sink.name} waits for all but {shown['except']}, and {silent} are silent"


def _wrong_words(
    sink: VirtualSink[Any], lander: LandedState, expected: list[str], shown: Mapping[str, Any]
) -> Iterator[str]:
    """Yield that a gateway names a retired device, or other failures than there were.

    Or that it does not name a source that holds a device.
    """
    words = " ".join(shown["waiting"])
    for device in lander.kept.state.membership.retired:
        if f" {device}," in f" {words},":
            yield f"{sink.name} shows {shown['waiting']}, and {device} is retired"
    failed = lander.core.failed + lander.alerts.failed
    if not failed <= Counter(shown["failed"]) or bool(failed) != bool(shown["failed"]):
        yield f"{sink.name} shows {shown['failed']} as failed, and it is {failed}"
    if any(each in words for each in _LISTENS):
        return
    for device in expected:
        promise = lander.kept.state.promises.entries.get(device)
        sources = sink.stated.held_by(device, sink.second - _SPARE_S)
        is_held = promise is not None and not promise.done and len(sources) == 1
        if is_held and all(sources) and not sources & {*words.replace(")", " ").split()}:
            yield f"{sink.name} shows {shown['waiting']}, and {sources} of {device} is silent"


def _are_clocks_apart(sink: VirtualSink[Any]) -> bool:
    """Return whether the clock of a device was far from a sink's, by its last beats.

    What a beat stated when it came may be another thing in the next turn, where the sink's is set.
    """
    if sink.clock.wrong or sink.clock.was_wrong:
        return True
    for beats in sink.ahead_us.values():
        lately = [ahead_us for second, ahead_us in beats if second >= sink.second - _SPARE_S]
        for ahead_us in [beats[-1][1], *lately]:
            if ahead_us is not None and abs(ahead_us) > CLOCKS_DIFFER_US - SECOND_US:
                return True
    return False


def silent_devices(
    sink: VirtualSink[Any], lander: LandedState, expected: list[str]
) -> list[str] | None:
    """Return who is not waited for, by its last turn; None where clocks were set.

    Without a clock nobody is silent; who cannot promise is not waited for in any case.
    """
    listening, promises = lander.core.listening, lander.kept.state.promises.entries
    mute = {name for name, each in promises.items() if each.low_us is None and not each.done}
    if listening is None:
        return [each for each in expected if each in mute]
    silent = []
    for device in expected:
        promise = promises.get(device)
        if promise is not None and promise.done:
            continue
        heard_us = listening.since_us if promise is None else promise.heard_us
        if heard_us > listening.now_us + CLOCKS_DIFFER_US:
            return None  # by a clock that was ahead
        silent_us = listening.now_us - max(heard_us, listening.since_us)
        if silent_us > sink.terms.dead_after_us or device in mute:
            silent.append(device)
    return silent


def _moment(time_us: int) -> str:
    return shown_time(time_us).replace(" ", "T") + "Z"
