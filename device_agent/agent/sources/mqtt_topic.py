"""A source of the messages on an MQTT topic: JSON objects, arrays of them, or bare values.

An object becomes readings as a row of a file does. A bare value (a number, a number in quotes, ON,
closed) is a reading of the event that `{event}` in the topic says, or of the one that `--event`
names, or else of the event called like the last level of the topic. Other names in braces make
tags of levels; see `topic_pattern`.

A message is acknowledged to the broker once its readings are durable, and the broker keeps what
comes while the agent is away. So no message is lost, but the broker sends a message again whose
acknowledgement was lost with the connection: it says so, under the same packet's number, and one
that this process has taken with the same content is dropped. It also sends one again that was
stored and not yet acknowledged when the agent was killed. A reading with a time of its own is then
a repeat, and dropped. A reading that the agent stamps counts twice, for nothing tells it from a new
one: publish a time where that matters.

A message that the broker retained is no reading, unless `--retained` asks for it; see `retained`.
"""

import hashlib
import json
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from device_agent.agent.intake.batch import Batch
from device_agent.agent.sources.fields import Record
from device_agent.agent.sources.jsonl_file import NOT_JSON
from device_agent.agent.sources.mapping import NO_ORIGIN, FieldMapping, Origin
from device_agent.agent.sources.mapping_options import (
    IGNORE,
    TAKE_RETAINED,
    mapping_of,
    ready_context,
)
from device_agent.agent.sources.nearest import quoted
from device_agent.agent.sources.retained import SeenContents
from device_agent.agent.sources.source import Source, SourceContext
from device_agent.agent.sources.topic_pattern import TopicPattern, matcher_of
from device_agent.agent.sources.values import as_number
from lasp_edge.link import BrokerUrl, Event, Limits, Link, Message
from lasp_edge.link.connection import now_s
from lasp_edge.units import SECOND_US

MOST_UNACKNOWLEDGED = 16
"""Messages of QoS 1 that may be unacknowledged: mosquitto stops at 20, others later."""
ROWS = 2_000
"""Messages in a batch, at most: some hundred kilobytes."""
KEEP_SESSION_S = 7 * 86_400
"""Seconds for which the broker keeps messages for an agent that is away: as long as readings are
accepted by default (`Settings.retain_us`)."""
LONGEST_WORD = 64
"""Bytes of a bare text, at most: the longest number or word."""
PACKETS = 1_024
"""Messages of QoS 1 that are remembered for what the broker sends again: more than most brokers
send without an answer, and far fewer than there are numbers of packets."""
SENT_AGAIN = "sent again by the broker, and taken before"
RETAINED = "retained by the broker (--retained takes it once)"
REPEATED = "retained by the broker, and taken before"
_GATHER_S = 0.25
"""Seconds for which the socket rests after a few messages: a tick comes every 0.5 s, and reads what
has come since the last one."""
_TOGETHER_S = 0.1
"""Seconds between the first message of a batch and its last one, which says when it came."""
_BUSY = 8
"""Messages in one look from which on the next one is soon: the broker may wait for answers."""
_SOON_US, _LATER_US = 100_000, 500_000
"""Microseconds until the next look, where there was much and else: an agent ticks as often."""


class MqttTopic(Source):
    """A source of one topic filter's messages, with a link of its own.

    Args:
        name: the source's name; the broker knows the session by it, the fleet and the device.
        pattern: which topics, and what their levels say.
        mapping: from objects to readings.
        broker: where it is published.
        device: the device's id.
        fleet: its name.
        jitter: for the link.
        retained: a message that the broker retained is a reading, once.
        ignored: topic filters of messages that are no readings.
        show: see `SourceContext.show`.

    Attributes:
        pattern, mapping: as they were given.
    """

    replayable = False

    def __init__(  # noqa: PLR0913 - one argument for each thing that is asked of a topic
        self,
        name: str,
        pattern: TopicPattern,
        mapping: FieldMapping,
        *,
        broker: BrokerUrl,
        device: str,
        fleet: str = "",
        jitter: random.Random,
        retained: bool = False,
        ignored: Sequence[str] = (),
        show: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self._seen = SeenContents() if retained else None
        self.mapping = mapping
        self.pattern, self._ignored = pattern, matcher_of(ignored)
        self._show, self._most = show, ROWS if show is None else 1
        identity = name.removeprefix("mqtt:") if show is None else jitter.random()
        mark = hashlib.sha256(f"{fleet}\0{device}\0{identity}".encode()).hexdigest()[:16]
        self.link = Link(
            broker,
            client_id=f"lasp-{mark}",
            subscriptions=[pattern.filter],
            manual_acknowledgement=True,
            keep_session_s=KEEP_SESSION_S if show is None else 0,
            jitter=jitter,
            limits=Limits(gather_s=_GATHER_S),
        )
        self._waiting: deque[Event] = deque()
        self._unacknowledged: deque[tuple[int, Message]] = deque()
        self._taken, self._is_busy = 0, False
        self._packets: dict[int, tuple[int, int]] = {}

    def open(self, cursor: str | None) -> None:
        """Connect; where to resume is the broker's knowledge, and not the cursor's."""
        if self._seen is not None and cursor is not None:
            self._seen = SeenContents(cursor.partition(" ")[2])
        self.link.start()

    @property
    def has_own_times(self) -> bool:
        """Whether its messages have a field with their time."""
        return self.mapping.has_times

    def poll(self, now_us: int) -> Batch | None:
        if not self._waiting:
            self._waiting.extend(self.link.poll(0.0))
            self._is_busy = len(self._waiting) >= _BUSY
        records: list[Record | str] = []
        origins: list[Origin] = []
        messages = _together(self._waiting, self._most)
        for message in messages:
            self._taken += 1
            self._unacknowledged.append((self._taken, message))
            origin, found = self._records(message)
            records += found
            origins += [origin] * len(found)
        if not messages:
            return None
        batch = self.mapping.batch(self.name, records, origins)
        if (arrived_s := messages[-1].arrived_s) is not None:
            batch.arrived_us = now_us - round((now_s() - arrived_s) * SECOND_US)
        batch.cursor = str(self._taken)
        if self._seen is not None:
            batch.cursor += f" {self._seen.text()}"
        return batch

    @property
    def is_full(self) -> bool:
        """Whether the broker may soon send nothing more before something is acknowledged."""
        unconfirmed = sum([bool(message.qos) for _, message in self._unacknowledged])
        return unconfirmed >= MOST_UNACKNOWLEDGED

    def due_us(self, now_us: int) -> int | None:
        if self._waiting:
            return now_us
        return now_us + (_SOON_US if self._is_busy else _LATER_US)

    def acknowledge(self, cursor: str | None) -> None:
        durable = 0 if cursor is None else int(cursor.partition(" ")[0])
        while self._unacknowledged and self._unacknowledged[0][0] <= durable:
            self.link.acknowledge(self._unacknowledged.popleft()[1])

    def close(self) -> None:
        self.link.stop()

    def says(self) -> str:
        return self.pattern.says()

    def _records(self, message: Message) -> tuple[Origin, list[Record | str]]:
        """Return the fields of a message and of its topic; a text is why it is no record."""
        topic, payload, retained = message.topic, message.payload, message.retain
        if self._show is not None:
            self._show(f"{topic}  {payload.decode(errors='backslashreplace')}")
        if message.qos and self._was_taken(message):
            return NO_ORIGIN, [SENT_AGAIN]
        if self._ignored is not None and self._ignored.fullmatch(topic):
            return NO_ORIGIN, []
        origin = self.pattern.origin(topic)
        if origin is None:
            return NO_ORIGIN, [self.mapping.no_event(topic)]
        if self._seen is None and retained:
            return origin, [RETAINED]
        if self._seen is not None and not self._seen.is_news(topic, payload, retained=retained):
            return origin, [REPEATED]
        value = _value_of(payload)
        values = value if type(value) is list else [value]
        level = topic.rpartition("/")[2]
        is_json = type(value) is not str or payload.lstrip()[:1] == b'"'
        return origin, [self._record(each, level, origin.event, is_json) for each in values]

    def _was_taken(self, message: Message) -> bool:
        """Return whether the broker sent this packet before a new connection; remember it."""
        connection, packet = message.token
        content = hash((message.topic, message.payload))
        before, known = self._packets.pop(packet, (connection, 0))
        self._packets[packet] = (connection, content)
        if len(self._packets) > PACKETS:
            del self._packets[next(iter(self._packets))]
        return message.again and before != connection and known == content

    def _record(
        self,
        value: Any,
        level: str,
        event: str | None,
        is_json: bool,  # noqa: FBT001
    ) -> Record | str:
        if type(value) is dict:
            return value
        if value is _NOTHING:
            return NOT_JSON
        found = self.mapping.record_of_value(value, level, event)
        if is_json or type(found) is not str or not found or type(as_number(value)) is not str:
            return found
        return f"{NOT_JSON}, and {found}"


def _together(waiting: deque[Event], most: int = ROWS) -> list[Message]:
    """Take the messages that came together, some at most, from those that wait."""
    found: list[Message] = []
    while waiting and len(found) < most:
        event = waiting[0]
        if isinstance(event, Message):
            if found and (event.arrived_s or 0.0) > (found[0].arrived_s or 0.0) + _TOGETHER_S:
                break
            found.append(event)
        waiting.popleft()
    return found


_NOTHING: Any = object()
_SCAN: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
"""Reads a value, and says where it ends: half of what `json.loads` does for a number."""


def _value_of(payload: bytes) -> Any:
    """Return the JSON value that a message is, or the short text; `_NOTHING` if it is neither."""
    try:
        # Without a zero byte ASCII is no other encoding, which JSON would look for first.
        if not payload.isascii() or 0 in payload:
            return json.loads(payload)
        text = payload.decode()
        try:
            value, end = _SCAN(text, 0)
        except StopIteration:  # white space comes first, or no value
            value, end = None, -1
        return value if end == len(text) else json.loads(text)
    except (ValueError, RecursionError):
        pass
    if not 0 < len(payload) <= LONGEST_WORD:
        return _NOTHING
    text = payload.decode("utf-8", errors="replace").strip()
    is_word = text.isprintable() and "\ufffd" not in text and text[:1] not in {"{", "[", '"', ""}
    return text if is_word else _NOTHING


def read_twice(sources: Iterable[Source]) -> Iterator[str]:
    """Yield which messages two sources of an agent both read, and what to do."""
    topics = [source for source in sources if isinstance(source, MqttTopic)]
    for one, other in combinations(topics, 2):
        given = [name for name in one.mapping.names if name in other.mapping.names]
        chosen = one.mapping.chooses or other.mapping.chooses
        if given and not chosen and one.pattern.meets(other.pattern):
            yield (
                f"{one.name} and {other.name} read the same messages where a topic is of "
                f"{one.pattern.text} and of {other.pattern.text}, and each reading of "
                f"{quoted(given)} there counts twice; give one of them another topic or event"
            )


def make(name: str, place: str, context: SourceContext) -> MqttTopic:
    """Return the source; see `SourceKind.make`."""
    if place.startswith("//"):
        host, _, topic = place.removeprefix("//").partition("/")
        raise ValueError(
            f"--source {name}: a topic is needed, and no address of a broker; write "
            f"--source 'mqtt:{topic or '#'}' --broker mqtt://{host}"
        )
    ready = ready_context(context)
    pattern = TopicPattern(place, context.device, context.events)
    mapping = mapping_of(context, passes_others=pattern.names_event)
    if context.broker is None:
        raise ValueError(f"--source {name} needs --broker")
    return MqttTopic(
        name,
        pattern,
        mapping,
        broker=context.broker,
        device=context.device,
        fleet=context.fleet,
        jitter=context.jitter,
        retained=context.get(TAKE_RETAINED),
        ignored=tuple(ready.get(IGNORE)),
        show=context.show,
    )
