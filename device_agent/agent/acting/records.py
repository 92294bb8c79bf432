"""What acting remembers: for each thing that is watched, a small record a key.

It is durable together with what was changed for it: a handler's updates and the note that it ran
are in one transaction. Records of a thing with keys are stored in 16 groups, so that a change of
one key writes few others again.
"""

from collections.abc import Container, Iterable, Iterator
from typing import Any

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.parts import Part
from lasp_edge.protocol.shards import key_shard

Record = Any
"""Plain data, as JSON knows it."""


class Records(Part):
    """The records of one agent.

    Args:
        agent: what all parts share.
        identities: what is watched now; what is remembered of anything else is forgotten.
    """

    name = "acting records"

    def __init__(self, agent: Agent, identities: Iterable[str]) -> None:
        self._records: dict[str, dict[str, Record]] = {each: {} for each in identities}
        self._changed: set[str] = set()
        for group, records in (agent.facts.acted or {}).items():
            identity, _, _ = group.rpartition("\x1f")
            if identity in self._records:
                self._records[identity].update(records)
            elif records:
                self._changed.add(group)

    def get(self, identity: str, key: str) -> Record | None:
        """Return the record of a key; None before the first one."""
        return self._records[identity].get(key)

    def of(self, identity: str) -> Iterator[tuple[str, Record]]:
        """Yield (key, record), sorted by key."""
        yield from sorted(self._records[identity].items())

    def put(self, identity: str, key: str, record: Record | None) -> None:
        """Replace the record of a key; None removes it."""
        if record is None:
            self._records[identity].pop(key, None)
        else:
            self._records[identity][key] = record
        self._changed.add(_group(identity, key))

    def forget_others(self, identity: str, keys: Container[str], most: int) -> None:
        """Forget all but the last records of keys that are not among these."""
        others = [key for key in self._records[identity] if key not in keys]
        for key in others[: max(0, len(others) - most)]:
            self.put(identity, key, None)

    def take_changes(self) -> Changes | None:
        if not self._changed:
            return None
        changed, self._changed = self._changed, set()
        return Changes(facts=Facts(acted={group: self._stored(group) for group in sorted(changed)}))

    def _stored(self, group: str) -> dict[str, Record]:
        records = self._records.get(group.rpartition("\x1f")[0], {}).items()
        return {key: record for key, record in records if group.endswith(_suffix(key))}


def _group(identity: str, key: str) -> str:
    return identity + _suffix(key)


def _suffix(key: str) -> str:
    return f"\x1f{key_shard(key):02x}"
