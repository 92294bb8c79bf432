"""What each fold is worth now, as this device knows it.

After a start a device knows its own samples, and of the fleet nothing yet. A mean over the fleet
would be its own, and an alert on it would go off and on again. So nothing acts on a value of the
fleet before the broker had time to give what it retains, and as many devices are in as the fleet
last agreed on; or until a while has passed without that, for a device that is cut off acts, too.
"""

from collections.abc import Callable
from fractions import Fraction

from crdts import Version
from device_agent.agent.agent import Agent
from device_agent.agent.fleet.agreement import Agreements
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.parts import Part
from device_agent.agent.variables.samples import Samples
from lasp_edge.aggregates.absence import PresentFold
from lasp_edge.aggregates.fleet import FleetFold, holders, partial_of
from lasp_edge.folds.bounds import is_in, of_samples, samples_of
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.exactly import exact_part
from lasp_edge.folds.fold import Fold
from lasp_edge.language.acting import FoldValue, Watched
from lasp_edge.language.declarations import DynamicFold, LocalFold
from lasp_edge.language.parameters import value_at
from lasp_edge.language.triggers import Trigger
from lasp_edge.protocol.inputs import entry_hash, inputs_digest
from lasp_edge.timers import NEVER_US, is_time
from lasp_edge.units import SECOND_US

HEARING_US = 3 * SECOND_US
"""Microseconds after a connection in which the broker gives what it retains."""
_NO_VERSION = Version(0, 0, 0)


class CurrentValues(Part):
    """The values of all folds.

    Args:
        agent: what all parts share.
        samples: the local folds' partials, and the fleet's entries of them.
        agreements: how far the fleet agrees.
        commands: the operators' entries of parameters.
        is_connected: returns whether there is a connection to the broker.
    """

    name = "current values"

    def __init__(
        self,
        agent: Agent,
        samples: Samples,
        agreements: Agreements,
        commands: OperatorCommands,
        is_connected: Callable[[], bool],
    ) -> None:
        self._commands, self._is_connected = commands, is_connected
        self._triggers: tuple[int, dict[Watched, list[tuple[int, Trigger | None]]]] = (0, {})
        self._agent, self._samples, self._agreements = agent, samples, agreements
        self._agreed = dict(agent.facts.settled or {})
        self._grace_us = agent.settings.grace_us
        self._started_us: int | None = None
        self._connected_us: int | None = None
        self._is_over = False

    def connected(self, now_us: int) -> None:
        self._connected_us = now_us

    def tick(self, now_us: int) -> None:
        if self._started_us is None:
            self._started_us = now_us
        over_us = self._started_us + self._grace_us
        self._is_over |= is_time(now_us, over_us, self._grace_us)
        self.due_us = NEVER_US if self._is_over else over_us

    def is_ready(self, name: str) -> bool:
        """Return whether it is known what a fold is worth; see the module."""
        fold = self._agent.plan.dynamic_folds.get(name)
        if fold is None or self._is_over:
            return True
        since_us = self._connected_us
        if since_us is None or not is_time(self._agent.now_us, since_us + HEARING_US, HEARING_US):
            return False
        agreed = self._agreed.get(name)
        if agreed is None or len(self._entries(fold).devices) >= agreed.devices:
            self._agreed.pop(name, None)  # from now on it is known, also when devices go
            return True
        return False

    def is_complete(self, name: str) -> bool:
        """Return whether a key that is not here is certainly gone.

        A device that was started where it reaches nobody, or is cut off before others had time to
        speak, does not know their keys.
        """
        since_us = self._connected_us
        if name not in self._agent.plan.dynamic_folds:
            return True
        if since_us is None or not self._is_connected():
            return False
        return is_time(self._agent.now_us, since_us + self._grace_us, self._grace_us)

    def is_keyed(self, name: str) -> bool:
        """Return whether a fold has a value for each key."""
        return self._fold(name).keyed

    def keys(self, name: str) -> list[str]:
        """Return the keys that a fold has a value for, sorted; without keys the one key ""."""
        fold = self._fold(name)
        if isinstance(fold, LocalFold):
            return list(self._samples.partials(name))
        entries = self._entries(fold)
        return entries.keys if fold.keyed else [""] * bool(entries.devices)

    def mark(self, name: str) -> int:
        """Return what differs where any value of a fold may be another one."""
        fold = self._fold(name)
        if isinstance(fold, LocalFold):
            return self._samples.moves[name]
        return self._entries(fold).digest

    def inputs(self, name: str, key: str) -> str:
        """Return the digest of a value's inputs; of a local fold, the value itself."""
        fold = self._fold(name)
        if isinstance(fold, LocalFold):
            device = self._agent.replica.device
            digest = entry_hash(key, device, _NO_VERSION, self.partial(name, key))
        else:
            digest = self._entries(fold).total(key).digest
        return inputs_digest(digest, fold.stream)

    def is_nothing(self, name: str, key: str) -> bool:
        """Return whether a value is made from no sample at all."""
        fold = self._fold(name).fold
        return samples_of(fold, self.partial(name, key)) == of_samples(fold).zero

    def partial(self, name: str, key: str) -> Partial:
        """Return the partial of a fold's key; its zero where nobody has the key."""
        fold = self._fold(name)
        if isinstance(fold, LocalFold):
            partial = self._samples.partial(name, key)
            return fold.fold.zero if partial is None else partial
        return self._entries(fold).total(key).partial

    def exact(self, name: str, key: str, part: str) -> Fraction | None:
        """Return a part of a value, exactly; None where there is no sample."""
        fold = self._fold(name)
        return exact_part(fold.fold, self.partial(name, key), fold.resolution, part)

    def trigger(self, watched: Watched) -> Trigger | None:
        """Return the condition of what is watched, as it is now."""
        if not watched.levels:
            return watched.trigger
        mark, known = self._triggers
        if mark != self._commands.control:
            mark, known = self._triggers = self._commands.control, {}
        if watched not in known:
            from lasp_edge.language.levels import triggers_of  # noqa: PLC0415 - few programs need it

            log, device = self._commands.known.control, self._agent.replica.device
            known[watched] = triggers_of(watched, log, device)
        return value_at(known[watched], self._agent.clock.time_us(self._agent.now_us))

    def value(self, name: str, key: str, part: str = "") -> FoldValue:
        """Return what a key of a fold is worth; `part` is the one that is watched, if any."""
        fold = self._fold(name)
        parts = fold.fold.lower(self.partial(name, key), fold.resolution)
        if not part and len(parts) == 1:
            (part,) = parts
        settled = True
        devices: tuple[str, ...] = (self._agent.replica.device,)
        missing: tuple[str, ...] = ()
        if isinstance(fold, DynamicFold):
            agreement = self._agreements.of(fold)
            settled = agreement.settled and self.is_ready(name)
            devices = tuple(_holders(self._entries(fold), fold.fold, key))
            missing = agreement.offline
        inputs = self.inputs(name, key)
        return FoldValue(name, key, parts.get(part), parts, inputs, settled, devices, missing)

    def known(self, name: str, key: str) -> FoldValue | None:
        """Return the value that a handler is given of a fold; None where nobody has the key."""
        fold = self._fold(name)
        if isinstance(fold, DynamicFold):
            is_known = bool(_partials(self._entries(fold), key))
        else:
            is_known = self._samples.partial(name, key) is not None
        return self.value(name, key) if is_known else None

    def _fold(self, name: str) -> LocalFold | DynamicFold:
        plan = self._agent.plan
        return plan.dynamic_folds.get(name) or plan.local_folds[name]

    def _entries(self, fold: DynamicFold) -> FleetFold | PresentFold:
        return self._samples.counting(fold)


def _partials(entries: FleetFold | PresentFold, key: str) -> dict[str, Partial | None]:
    """Return device -> its partial, of those that have a key and count, sorted."""
    if isinstance(entries, PresentFold):
        return {device: entries.partial(device, key) for device in entries.holders(key)}
    return {device: partial_of(entries, device, key) for device in holders(entries, key)}


def _holders(entries: FleetFold | PresentFold, fold: Fold, key: str) -> list[str]:
    """Return the devices whose samples are in the value of a key, sorted."""
    total = entries.total(key).partial
    found = _partials(entries, key)
    return [device for device, each in found.items() if each and is_in(fold, each, total)]
