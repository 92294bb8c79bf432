"""The topics that hold what a gateway shows people: a later process knows which to clear.

A window, a result or an alert leaves the program while the gateway is away, or gets another meaning
or no keys any more; or a connection broke before the broker took that a topic is cleared. What it
retains then would stay, and Home Assistant would go on to show it.

The topic of a key that was quiet for long stays: its newest row is there.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from device_agent.outputs.topic_notes import TopicNotes
from lasp_edge.language.plan import Plan
from lasp_edge.language.raising import fleet_alerts, has_keys
from lasp_edge.protocol.shards import KEY_SHARDS
from lasp_edge.protocol.topics import Topics

MEANINGS, GONE = "shown meanings", "shown gone"
"""Facts: how topics begin -> what they mean, and the topics that are still to be cleared."""


class GatewayTopics:
    """The stored topics of one gateway.

    Args:
        plan: the program.
        topics: of the fleet.
        gateway: its name. Under another one, or in another fleet, it clears nothing: a gateway of
            the former name may run, with a copy of this one's file.
        facts: what the store has.
        put: stores facts.

    Attributes:
        notes: the topics; what was noted is stored by `store`.
        gone: those of them that the program no longer has, unless their content is there.
    """

    def __init__(
        self,
        plan: Plan,
        topics: Topics,
        gateway: str,
        facts: Mapping[str, str],
        put: Callable[[dict[str, str]], None],
    ) -> None:
        self._put = put
        self._meanings = dict(_meanings(plan, topics, gateway))
        former = json.loads(facts.get(MEANINGS, "{}"))
        if topics.gateway(gateway) not in former:
            facts = {}
        self._waits = former != self._meanings
        groups = [json.loads(facts.get(_group(shard), "[]")) for shard in range(KEY_SHARDS)]
        self._left: dict[int, list[str]] = {} if facts else dict(enumerate(groups))
        self.notes = TopicNotes(groups, self._change)
        meant = {begin for begin, meaning in self._meanings.items() if former.get(begin) == meaning}
        self.gone = set(json.loads(facts.get(GONE, "[]")))
        self.gone |= {each for each in self.notes.topics if meant.isdisjoint(_beginnings(each))}

    def store(self, topics: Iterable[str]) -> None:
        """Store the topics on which something is published right after."""
        for topic in topics:
            self.notes.add(topic)
            self.gone.discard(topic)
        if self._waits:
            changed = self._left | self.notes.take_changed(is_connected=True)
            self._left.clear()
            self.gone &= self.notes.topics
            facts: dict[str, Any] = {_group(shard): each for shard, each in changed.items()}
            facts |= {MEANINGS: self._meanings, GONE: sorted(self.gone)}
            self._put({name: json.dumps(each) for name, each in facts.items()})
            self._waits = False

    def _change(self) -> None:
        self._waits = True


def _meanings(plan: Plan, topics: Topics, gateway: str) -> Iterator[tuple[str, str]]:
    """Yield how topics begin, and what they mean; one without keys is its own beginning."""
    yield topics.gateway(gateway), ""
    for window in plan.windows.values():
        yield f"{topics.result(window.name, gateway)}{_end(plan, window.name)}", str(window.stream)
    for result in plan.fleet_results.values():
        yield f"{topics.result(result.name, gateway)}{_end(plan, result.name)}", str(result.stream)
    for name, watched in fleet_alerts(plan).items():
        yield f"{topics.alert(name, gateway)}{_end(plan, watched.variable)}", watched.identity


def _end(plan: Plan, name: str) -> str:
    """Return what stands before the key of a window's or a result's rows."""
    is_keyed = plan.windows[name].keyed if name in plan.windows else has_keys(plan, name)
    return "/" if is_keyed else ""


def _beginnings(topic: str) -> tuple[str, str]:
    return topic, f"{topic.rpartition('/')[0]}/"


def _group(shard: int) -> str:
    return f"shown {shard:x}"
