"""What must hold of the turns of alerts that a device calls out: each of them, in their order.

The world calls out as a process does, some steps later and a few at a time; what a process has
taken, and not called out, is lost with it.

- a first turn is on, and then off and on follow each other, whatever restarts lie between
- no turn is left out, and none is called out twice by one process
- at rest the turn that was called out last says what the alert does
"""

from collections.abc import Iterator
from typing import Final

from device_agent.agent.acting.alerts import Turn
from simulations.world.device import VirtualDevice

CALL_STEPS: Final = (2, 2, 20)
"""Steps that a call takes, by the number of its turn: now and then nobody answers for a while."""
MOST_TAKEN: Final = 2
"""Turns that a process takes at a time."""


class CalledOut:
    """The turns that one device has called out, in all its processes."""

    def __init__(self) -> None:
        self._nonce = -1
        self._taken: list[tuple[int, Turn]] = []
        self._seen: set[tuple[str, str, int]] = set()
        self._last: dict[tuple[str, str], Turn] = {}

    def call(self, device: VirtualDevice, step: int) -> Iterator[str]:
        """Call out what is due after a device's turn; yield what is wrong with it."""
        core = device.core
        if core.replica.nonce != self._nonce:
            self._nonce = core.replica.nonce
            self._taken.clear()
            self._seen.clear()
        alerts = core.acting.alerts
        if alerts is None or core.fence.closed:
            return
        for _, turn in [each for each in self._taken if each[0] <= step]:
            yield from self._end(device, turn)
            alerts.called_out(turn)
            self._seen.discard(turn[:3])  # a key that is gone, and comes back, begins again
        self._taken = [each for each in self._taken if each[0] > step]
        for turn in alerts.turns():
            if len(self._taken) == MOST_TAKEN:
                break
            if turn[:3] in self._seen:
                yield f"{device.name} has {turn} called out twice"
            self._seen.add(turn[:3])
            begins = self._taken[-1][0] if self._taken else step  # one after the other
            self._taken.append((begins + CALL_STEPS[turn.number % len(CALL_STEPS)], turn))

    def _end(self, device: VirtualDevice, turn: Turn) -> Iterator[str]:
        at = turn.alert, turn.key
        before, self._last[at] = self._last.get(at), turn
        if turn.status["state"] != ("on" if turn.number % 2 else "off"):
            yield f"{device.name} has {turn} called out, which is not its state"
        if device.forgot or device.is_copy or device.uncertain:
            return
        most = 1 if before is None else before.number + 1
        if turn.number > most:
            yield f"{device.name} has {turn} called out, and not turn {most}"

    def wrong(self, device: VirtualDevice) -> Iterator[str]:
        """Yield the alerts at rest that say something else than was called out last."""
        alerts = device.core.acting.alerts
        assert alerts is not None, "the program has alerts"
        if device.forgot or device.is_copy or device.uncertain:
            return
        on = {at for at, turn in self._last.items() if turn.status["state"] == "on"}
        now = set[tuple[str, str]]()
        for name, status in alerts.report()["alerts"].items():
            for key, each in status.get("keys", {"": status}).items():
                if each["state"] == "on":
                    now.add((name, key))
        if on != now:
            yield f"{device.name} has called out that {sorted(on)} are on, and {sorted(now)} are"
