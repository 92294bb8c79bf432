"""A source of the messages on an MQTT topic, each a JSON object or a bare number.

An object becomes readings as a row of a file does. A bare number is a reading of the one event
that `--event` names, or else of the event called like the last level of the topic.

A message is acknowledged to the broker once its readings are durable, and the broker keeps what
comes while the agent is away. So no message is lost, but the broker sends a message again that was
stored and not yet acknowledged when the agent was killed. A reading with a time of its own is then
a repeat, and dropped. A reading that the agent stamps counts twice, for nothing tells it from a new
one: publish a time where that matters.

A message that the broker retained is no reading, unless `--retained` asks for it; see `retained`.
"""

import hashlib
import json
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from device_agent.intake.batch import Batch
from device_agent.sources.jsonl_file import NOT_JSON
from device_agent.sources.mapping import MAPPING_OPTIONS, FieldMapping, Record, mapping_of
from device_agent.sources.retained import SeenContents
from device_agent.sources.source import Option, SourceContext, SourceKind
from lasp_edge.link import BrokerUrl, Event, Link, Message

MOST_UNACKNOWLEDGED = 16
"""Messages of QoS 1 that may be unacknowledged: mosquitto stops at 20, others later."""
ROWS = 2_000
"""Messages in a batch, at most: some hundred kilobytes."""
KEEP_SESSION_S = 7 * 86_400
"""Seconds for which the broker keeps messages for an agent that is away: as long as readings are
accepted by default (`Settings.retain_us`)."""
NO_RECORD = "neither a JSON object nor a number"
RETAINED = "retained by the broker (--retained takes it once)"
REPEATED = "retained by the broker, and taken before"
_RETAINED_OPTION = Option[bool](
    "retained",
    default=False,
    parse=bool,
    help="what the broker retained is a reading, too: each content of a topic once",
    is_flag=True,
)
_LOOK_AGAIN_US = 100_000
"""Microseconds between two looks for messages, where nothing wakes the agent."""


class MqttTopic:
    """A source of one topic filter's messages, with a link of its own.

    Args:
        name: the source's name.
        topic: the topic filter.
        mapping: from objects to readings.
        broker: where it is published.
        device: the device's id; the broker knows the session by it and the topic.
        jitter: for the link.
        wake: wakes the agent when something has come; without it the agent looks every 0.1 s.
        retained: a message that the broker retained is a reading, once.
    """

    replayable = False

    def __init__(
        self,
        name: str,
        topic: str,
        mapping: FieldMapping,
        *,
        broker: BrokerUrl,
        device: str,
        jitter: random.Random,
        wake: Callable[[], None] | None = None,
        retained: bool = False,
    ) -> None:
        self.name = name
        self._seen = SeenContents() if retained else None
        self._mapping = mapping
        self._wakes = wake is not None
        mark = hashlib.sha256(f"{device}\0{topic}".encode()).hexdigest()[:16]
        self.link = Link(
            broker,
            client_id=f"lasp-{mark}",
            subscriptions=[topic],
            manual_acknowledgement=True,
            keep_session_s=KEEP_SESSION_S,
            jitter=jitter,
            notify=wake,
        )
        self._waiting: deque[Event] = deque()
        self._unacknowledged: deque[tuple[int, Message]] = deque()
        self._taken = 0

    def open(self, cursor: str | None) -> None:
        """Connect; where to resume is the broker's knowledge, and not the cursor's."""
        if self._seen is not None and cursor is not None:
            self._seen = SeenContents(cursor.partition(" ")[2])
        self.link.start()

    @property
    def has_own_times(self) -> bool:
        """Whether its messages have a field with their time."""
        return self._mapping.has_times

    def poll(self, now_us: int) -> Batch | None:  # noqa: ARG002
        if not self._waiting:
            self._waiting.extend(self.link.poll(0.0))
        records: list[Record | str] = []
        while self._waiting and len(records) < ROWS:
            event = self._waiting.popleft()
            if isinstance(event, Message):
                self._taken += 1
                self._unacknowledged.append((self._taken, event))
                records.append(self._record(event))
        if not records:
            return None
        batch = self._mapping.batch(self.name, records)
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
        return None if self._wakes else now_us + _LOOK_AGAIN_US

    def acknowledge(self, cursor: str | None) -> None:
        durable = 0 if cursor is None else int(cursor.partition(" ")[0])
        while self._unacknowledged and self._unacknowledged[0][0] <= durable:
            self.link.acknowledge(self._unacknowledged.popleft()[1])

    def close(self) -> None:
        self.link.stop()

    def _record(self, message: Message) -> Record | str:
        if self._seen is None and message.retain:
            return RETAINED
        topic, payload, retained = message.topic, message.payload, message.retain
        if self._seen is not None and not self._seen.is_news(topic, payload, retained=retained):
            return REPEATED
        try:
            value: Any = json.loads(message.payload)
        except (ValueError, RecursionError):
            return NOT_JSON
        if type(value) is dict:
            return value
        if type(value) is not float and type(value) is not int:
            return NO_RECORD
        return self._mapping.record_of_number(message.topic.rpartition("/")[2], value)


def _make(spec: str, place: str, context: SourceContext) -> MqttTopic:
    mapping = mapping_of(context)
    if context.broker is None:
        raise ValueError(f"--source {spec} needs --broker")
    return MqttTopic(
        spec,
        place,
        mapping,
        broker=context.broker,
        device=context.device,
        jitter=context.jitter,
        wake=context.wake,
        retained=context.get(_RETAINED_OPTION),
    )


KIND = SourceKind("mqtt", "TOPIC", _make, (*MAPPING_OPTIONS, _RETAINED_OPTION))
