"""The results that a fleet's devices have told, found by value and device."""

from collections.abc import Iterator

from device_agent.console.view.told import Plain
from lasp_edge.protocol.topics import ResultAddress

MOST_RESULTS = 100_000
"""Results that are remembered, some 100 MB at most; an onlooker is no device."""


class ToldResults:
    """What was told last at each address."""

    def __init__(self) -> None:
        self._told: dict[tuple[str | None, str | None], dict[str | None, Plain]] = {}
        self._count = 0

    def put(self, address: ResultAddress, result: Plain) -> bool:
        """Remember a result; return whether there was room for it."""
        told = self._told.get(address[:2], {})
        if address.key not in told:
            if self._count >= MOST_RESULTS:
                return False
            self._count += 1
        self._told.setdefault(address[:2], told)[address.key] = result
        return True

    def drop(self, address: ResultAddress) -> None:
        """Forget a result."""
        told = self._told.get(address[:2], {})
        self._count -= told.pop(address.key, None) is not None
        if not told:
            self._told.pop(address[:2], None)

    def get(self, name: str | None, device: str | None, key: str | None = None) -> Plain | None:
        """Return what was told at an address; None for nothing."""
        return self._told.get((name, device), {}).get(key)

    def keys(self, name: str, device: str | None) -> list[str]:
        """Return the keys of a value that a device, or the fleet's voice, has told, sorted."""
        return sorted(key for key in self._told.get((name, device), ()) if key is not None)

    def all_of(self, name: str) -> Iterator[tuple[ResultAddress, Plain]]:
        """Yield all that was told of a value, sorted by device."""
        found = [(device, told) for (named, device), told in self._told.items() if named == name]
        for device, told in sorted(found, key=str):
            for key, result in told.items():
                yield ResultAddress(name, device, key), result

    @property
    def names(self) -> set[str]:
        """The values that something was told of."""
        return {name for name, _ in self._told if name}

    @property
    def devices(self) -> set[str]:
        """The devices that have told anything."""
        return {device for _, device in self._told if device}
