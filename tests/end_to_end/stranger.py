"""A stranger on the fleet's broker says what no device would. Everything is to be refused.

What one who is let in to the broker could say in a device's name, well formed and near the truth,
is beyond what can be refused without signatures, and is left out here.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgpack

from crdts import Replica
from crdts.membership import NEVER
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl, Link
from lasp_edge.protocol.acks import AckFrame, Seqs
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.envelope import FORMAT, Frame
from lasp_edge.protocol.frames import (
    AskFrame,
    BeatFrame,
    PaneFrame,
    PresenceFrame,
    VariableFrame,
    VariableReport,
)
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.sinks import SinkLow
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES
from lasp_edge.protocol.topics import Topics
from tests.support_commands import member_command

HUGE_BYTES = 10_000_000
NONCE = 0xBAD
NOBODY = "nobody"
_DECADE_US = 10 * 365 * 86_400_000_000
_SHAPES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1.5,
    "text",
    b"\x00",
    [],
    {},
    [1],
    [1, 1, "x"],
    [[]] * 8,
    [None] * 8,
    {"format": 1},
)


class Publication(NamedTuple):
    """One message."""

    topic: str
    payload: bytes
    retain: bool = False


def publications(
    program: Plan, devices: Sequence[str], now_us: int, seed: int
) -> Iterator[Publication]:
    """Yield messages without end.

    Args:
        program: the fleet's.
        devices: whose topics are used, two at least.
        now_us: the wall clock.
        seed: of what is drawn.
    """
    chance = random.Random(seed)
    topics = Topics(program.name)
    while True:
        victim, other = chance.sample(devices, 2)
        places = _places(topics, program, victim)
        for topic in places.values():
            retain = chance.random() < 0.2
            yield Publication(topic, chance.randbytes(chance.randrange(2_000)), retain)
            yield Publication(topic, b"")
            yield Publication(topic, b"\x91" * chance.randrange(3_000))
            yield Publication(topic, chance.randbytes(MAX_MESSAGE_BYTES + 1))
            for shape in (*_SHAPES, *_envelopes(chance, victim)):
                yield Publication(topic, msgpack.packb(shape))
        for frame in _frames(program, Replica(1, NONCE, other), now_us):
            yield from (Publication(topic, frame.encode()) for topic in places.values())
        for far in _far_frames(program, victim, now_us):
            yield Publication(places[_place(far)], far.encode())
        for wrong in _wrong_panes(program, NOBODY, now_us):
            yield Publication(topics.of("pane", NOBODY), wrong.encode())
        yield Publication(f"{topics.root}/zz/pane/{victim}", b"no shard")
        yield Publication(f"{topics.root}/00/pane/_zz", b"no name")
        yield Publication(f"{topics.root}/00/beat", b"no device")


def huge(program: Plan, device: str, seed: int) -> list[Publication]:
    """Return a huge message for each kind of topic; a link drops it where it comes in."""
    payload = random.Random(seed).randbytes(HUGE_BYTES)
    places = _places(Topics(program.name), program, device)
    return [Publication(topic, payload) for topic in places.values()]


def _places(topics: Topics, program: Plan, device: str) -> dict[str, str]:
    """Return a topic of the device for each kind of frame, by the kind's name."""
    variable = next(iter(program.published_folds))
    names = {row.topic: () for row in FRAME_KINDS.values()} | {"var": (variable, "00")}
    return {kind: topics.of(kind, device, *rest) for kind, rest in names.items()}


def _place(frame: Frame) -> str:
    return FRAME_KINDS[frame.kind].topic


def _envelopes(chance: random.Random, device: str) -> Iterator[list[Any]]:
    """Yield envelopes of which one thing is wrong."""
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    for kind in range(9):
        sound = [FORMAT, kind, device, 1, NONCE, 1, None, []]
        for at, wrong in enumerate((FORMAT - 1, "pane", "", -1, 2**32, 0, -1, {})):
            yield [*sound[:at], wrong, *sound[at + 1 :]]
        yield [*sound[:7], [chance.choice(_SHAPES) for _ in range(3)]]
        yield [*sound[:7], deep]
        yield [*sound, 9]
    yield [FORMAT, 1, device, 2**30, NONCE, 1, None, []]
    head = [FORMAT, 1, device, 1, NONCE, 1, None]
    yield [*head, [[1, -1, 1, 1, [[1]], [], [1], [1]]]]
    yield [*head, [[1, 10, 1, 1, [[1, 2]], [], [2**62, 2**62], [1, 1]]]]


def _frames(program: Plan, replica: Replica, now_us: int) -> Iterator[Any]:
    """Yield sound frames of a replica; they come on another device's topics."""
    window = next(iter(program.windows.values()))
    fold = next(iter(program.published_folds.values()))
    pane_us = now_us - now_us % window.span_us
    columns = ((1,),) * len(window.fold.columns)
    entries = PaneEntries(window.stream, window.span_us, 1, NONCE, columns, ("",), (pane_us,), (1,))
    yield PaneFrame(replica, 1, (entries,))
    parts = ((7,),) * len(fold.fold.columns)
    yield VariableFrame(replica, 1, fold.name, fold.stream, 0, ("",), (1,), parts)
    yield BeatFrame(
        replica,
        1,
        (SinkLow("lake", 0, now_us),),
        done=True,
        reports=(VariableReport(fold.name, 1, 1),),
    )
    yield PresenceFrame(replica, 1, online=False)
    every = Seqs(replica.incarnation, NONCE, ((0, 10_000),))
    yield AckFrame(replica, 1, replica.device, "no such sink", "no such lake", (every,))
    yield AskFrame(replica, 1, replica.device, fold.name)
    yield member_command(replica, 1, replica.device, 1, retired=True, version=NEVER)


def _far_frames(program: Plan, device: str, now_us: int) -> Iterator[Any]:
    """Yield frames in a device's name that come from the far future."""
    far_us = now_us + _DECADE_US
    for incarnation in (2_000, 2**30 - 1):
        replica = Replica(incarnation, NONCE, device)
        yield from list(_frames(program, replica, now_us))[:3]
        yield PresenceFrame(replica, 1, online=True)
    near = Replica(1, NONCE, device)
    yield BeatFrame(near, 1, (SinkLow("lake", 0, far_us),), done=False, reports=())


def _wrong_panes(program: Plan, device: str, now_us: int) -> Iterator[PaneFrame]:
    """Yield panes that no window takes, of a device that has not spoken."""
    replica = Replica(1, NONCE, device)
    yield next(_frames(program, replica, now_us + _DECADE_US))
    stream = next(_frames(program, replica, now_us)).blocks[0]._replace(stream=12_345)
    yield PaneFrame(replica, 1, (stream,))


class Stranger:
    """Publishes as fast as the broker takes it.

    Args:
        url: the broker's.
        frames: to publish, in order.
    """

    def __init__(self, url: str, frames: Iterator[Publication]) -> None:
        self.count = 0
        self._frames = frames
        self._held: Publication | None = None
        self._link = Link(
            BrokerUrl.parse(url),
            client_id="stranger",
            subscriptions=["$SYS/none"],
            jitter=random.Random(1),
        )

    def __enter__(self) -> "Stranger":
        self._link.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._link.stop()

    def speak(self, most: int = 100) -> None:
        """Publish some of it."""
        self._link.poll(0.0)
        for _ in range(most):
            word = self._held or next(self._frames)
            self._held = None
            if not self._link.publish(word.topic, word.payload, retain=word.retain):
                self._held = word
                return
            self.count += 1

    def speak_while(self, condition: Callable[[], bool]) -> None:
        """Publish for as long as a condition holds; the caller bounds that."""
        while condition():
            self.speak()
            self._link.poll(0.02)
