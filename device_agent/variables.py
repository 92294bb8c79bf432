"""A device's variables: its own states, the fleet's partials, and the folds over both.

A *dynamic* variable is this device's alone; a local fold turns it into one partial, which travels
as this device's entry of an `OwnedMap`. A *shared* variable is joined over the fleet; each device
publishes what it contributed itself. Targets of folds are derived: assigned from their inputs,
never joined and never sent as a state.

`Result.inputs` says what a fleet-wide value was made from: equal inputs, equal value, on every
tier. A variable is *settled* when every device that has it last reported the digest that is held
here; devices that are offline and did not are named.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from crdts import BoundedLWWSet, Lattice, Replica, Version
from crdts.wire import decode, encode
from device_agent.changes import Changes, Restored
from device_agent.peers import Peers, too_far_ahead
from device_agent.published import Published
from lasp_edge.declarations import Change, DynamicFold, LocalFold
from lasp_edge.fold import Fold, Partial
from lasp_edge.folds import fold_of
from lasp_edge.inputs import inputs_digest, text_hash, variable_digest
from lasp_edge.messages import BeatFrame, Report, VariableFrame
from lasp_edge.program import Program

DELTAS_PER_STATE = 64
"""After so many stored deltas a variable is stored whole."""
STORED_BYTES = 1 << 30
"""An own stored state is decoded whatever its size; a peer's is bounded by its frame."""
TIME_LIMIT_US = 2**61
NO_STREAM = 0
"""The stream of a shared state: it has no fold."""


class Result(NamedTuple):
    """The value of a fold's target as this device holds it.

    Attributes:
        partial: the integers.
        inputs: what it was made from; empty for a local fold.
        devices: how many devices are in.
        settled: every device that is connected holds the same inputs.
        offline: devices that are offline and did not report the same.
    """

    partial: Partial
    inputs: str
    devices: int
    settled: bool
    offline: tuple[str, ...]


class Asked:
    """What handlers asked for during one batch, found fit: samples, and joined deltas."""

    __slots__ = ("deltas", "samples")

    def __init__(self) -> None:
        self.samples: dict[str, tuple[list[Any], list[int]]] = {}
        self.deltas: dict[str, Lattice] = {}


class Variables:
    """The variables of one device.

    Args:
        program: the program.
        replica: this life.
        restored: what the store holds of earlier lives; single-writer sets are adopted.
        changes: where the adopted states are noted.

    Attributes:
        left_aside: what could not be used, by reason; the core counts and clears it.
    """

    def __init__(
        self, program: Program, replica: Replica, restored: Restored, changes: Changes
    ) -> None:
        self._replica = replica
        self._folds = program.local_folds
        self._dynamic = program.dynamic_folds
        self._published = {name: Published(f) for name, f in program.published_folds.items()}
        self._shared = dict.fromkeys(program.shared_variables, 0)
        self._states: dict[str, Lattice] = {}
        self._fleet: dict[str, Lattice] = {}
        self._fleet_digests: dict[str, int] = {}
        self._local: dict[str, Partial] = {}
        self._deltas: dict[str, int] = {}
        self._stale: set[str] = set()
        self._unsent: set[str] = set()
        self.left_aside: list[str] = []
        self.peers = Peers([*self._published, *self._shared])
        self._bottoms = _bottoms(program)
        for name, bottom in self._bottoms.items():
            self._states[name] = self._restored(name, bottom, restored)
        for name in self._shared:
            self._fleet[name] = self._states[name].copy()
        self._careful = {name: self._folds_of_users(name) for name in self._states}
        self.become(replica, changes)

    def _restored(self, name: str, bottom: Lattice, restored: Restored) -> Lattice:
        """Return what the store holds of a variable; what no longer fits is left aside."""
        state, stored = bottom.copy(), restored.states.get(name)
        for encoded in [*([stored] if stored else []), *restored.deltas.get(name, ())]:
            part = _fitting(encoded, bottom)
            if part is None:
                self.left_aside.append("variable: the store holds another definition")
                return bottom.copy()
            state |= part
        return state

    def _folds_of_users(self, name: str) -> list[Fold]:
        """Return the folds over a variable that are the user's own, and may fail."""
        folds = [fold.fold for fold in self._folds.values() if fold.source.name == name]
        return [fold for fold in folds if fold_of(fold.description()) is None]

    def become(self, replica: Replica, changes: Changes) -> None:
        """Go on as another replica: single-writer sets and own entries move to its name."""
        self._replica = replica
        for name, state in self._states.items():
            if isinstance(state, BoundedLWWSet):
                self._adopt(name, state)
                self._store_whole(name, changes)
        for published in self._published.values():
            published.seq = 0
        self._shared = dict.fromkeys(self._shared, 1)
        self._stale = set(self._folds)
        self._local.clear()
        self._unsent = set(self._shared)

    def apply(self, requested: Sequence[Change], asked: Asked) -> None:
        """Take what handlers want for one reading, all of it or, on an error, nothing.

        Raises:
            ValueError: a change does not fit.
        """
        samples: list[tuple[str, Any, int]] = []
        deltas: list[tuple[str, Lattice]] = []
        ahead: dict[str, Lattice] = {}
        for name, mutator, arguments in requested:
            state = ahead.get(name, self._states[name])
            if isinstance(state, BoundedLWWSet) and mutator == "add":
                samples.append(self._sample(name, arguments))
                continue
            deltas.append((name, getattr(state, mutator)(self._replica, *arguments)))
            if len(requested) > 1:
                ahead[name] = state | deltas[-1][1]
        for name, value, time_us in samples:
            values, times_us = asked.samples.setdefault(name, ([], []))
            values.append(value)
            times_us.append(time_us)
        for name, delta in deltas:
            self._join(name, delta, asked)

    def _sample(self, name: str, arguments: tuple[Any, ...]) -> tuple[str, Any, int]:
        value, time_us, *_ = arguments
        if type(time_us) is not int or not -TIME_LIMIT_US < time_us < TIME_LIMIT_US:
            raise ValueError(f"add to {name!r}: a time in microseconds is needed")
        for fold in self._careful[name]:
            if not fold.within_limits(fold.lift(value, time_us)):
                raise ValueError(f"add to {name!r}: the partial is out of range")
        return name, value, time_us

    def _join(self, name: str, delta: Lattice, asked: Asked) -> None:
        self._states[name] |= delta
        if name in asked.deltas:
            asked.deltas[name] |= delta
        else:
            asked.deltas[name] = delta

    def record(self, asked: Asked, accepted_us: int, changes: Changes) -> None:
        """Join a batch's samples, and note what became of the variables.

        Args:
            asked: what the batch's handlers asked for.
            accepted_us: when it was accepted.
            changes: where the deltas go.
        """
        for name, (values, times_us) in asked.samples.items():
            state = self._states[name]
            assert isinstance(state, BoundedLWWSet)
            self._join(name, state.add_many(self._replica, values, times_us, accepted_us), asked)
        for name, delta in sorted(asked.deltas.items()):
            self._note(name, delta, changes)

    def _note(self, name: str, delta: Lattice, changes: Changes) -> None:
        """Note a joined delta of an own state, and what it makes stale."""
        self._stale.update(t for t, fold in self._folds.items() if fold.source.name == name)
        if name in self._shared:
            self._join_fleet(name, delta)
            self._shared[name] += 1
            self._unsent.add(name)
        self._deltas[name] = self._deltas.get(name, 0) + 1
        if self._deltas[name] >= DELTAS_PER_STATE or name in changes.states:
            self._store_whole(name, changes)
        else:
            changes.deltas.append((name, encode(delta)))

    def _store_whole(self, name: str, changes: Changes) -> None:
        self._deltas[name] = 0
        changes.states[name] = encode(self._states[name])
        changes.deltas = [(other, delta) for other, delta in changes.deltas if other != name]

    def _adopt(self, name: str, state: BoundedLWWSet) -> None:
        """Take a single-writer set over; the program's limits hold, whatever the store's are."""
        bottom = self._bottoms[name]
        assert isinstance(bottom, BoundedLWWSet)
        state |= state.adopt(self._replica)
        if (state.bound, state.max_age_s) != (bottom.bound, bottom.max_age_s):
            state |= state.resized(bottom.bound, state.control_version + 1, bottom.max_age_s)

    def expire(self, now_us: int, changes: Changes) -> None:
        """Drop what is too old in sets that are bounded by age."""
        for name, state in self._states.items():
            if isinstance(state, BoundedLWWSet) and state.max_age_s is not None:
                delta = state.expire(now_us)
                if not delta <= state:
                    self._states[name] |= delta
                    self._note(name, delta, changes)

    def refold(self) -> None:
        """Bring local folds up to date; changed partials become this device's new entries."""
        for name in sorted(self._stale):
            state = self._states[self._folds[name].source.name]
            assert isinstance(state, BoundedLWWSet)
            partial = self._folded(self._folds[name], state) if state.complete else None
            if partial is not None and self._local.get(name) != partial:
                self._local[name] = partial
                if name in self._published:
                    self._published[name].put_own(self._replica, partial)
                    self._unsent.add(name)
        self._stale.clear()

    def _folded(self, fold: LocalFold, state: BoundedLWWSet) -> Partial | None:
        """Return the fold of a state; None where a user's fold fails or leaves its range."""
        times_us = [time_us for time_us, _, _ in state.samples()]
        with suppress(Exception):  # a user's fold may raise anything
            partial = fold.fold.lift_column(state.values(), times_us)
            if fold.fold.within_limits(partial):
                return partial
        self.left_aside.append(f"fold {fold.name}: failed, or out of range")
        return None

    def resend(self) -> None:
        """Publish all own entries again."""
        self._unsent.update(self._shared, (n for n, p in self._published.items() if p.seq))

    def ask(self, name: str) -> None:
        """A peer wants this device's entry of a variable."""
        if name in self._shared or (name in self._published and self._published[name].seq):
            self._unsent.add(name)

    def take_unsent(self) -> list[VariableFrame]:
        """Return the entries that are to be published, coalesced."""
        frames = []
        for name in sorted(self._unsent):
            if name in self._shared:
                parts: tuple[int | bytes | None, ...] = (encode(self._states[name]),)
                frames.append(
                    VariableFrame(self._replica, self._shared[name], name, NO_STREAM, parts)
                )
            else:
                frames.append(self._published[name].frame(self._replica))
        self._unsent.clear()
        return frames

    def receive(self, frame: VariableFrame, changes: Changes) -> str:
        """Join a peer's entry, or an own one that the broker kept.

        Returns:
            What it was: "news", "known", "own" (this device's, not newer), "newer" (this
            device's, from a life that this one does not know), or why it was left aside.
        """
        own = frame.replica.device == self._replica.device
        if own and frame.replica > self._replica:
            return "newer"
        if frame.variable in self._shared:
            return self._receive_state(frame, changes, own=own)
        if frame.variable in self._published:
            return self._receive_partial(frame, self._published[frame.variable], own=own)
        return "another definition"

    def _receive_partial(self, frame: VariableFrame, published: Published, *, own: bool) -> str:
        partial = tuple([part for part in frame.parts if not isinstance(part, bytes)])
        if frame.stream != published.fold.stream:
            return "another definition"
        if not frame.number or not published.fold.fold.within_limits(partial):
            return "out of range"
        if own:
            self._send_if_older(frame, published.seq)
            return "own"
        known = published.version(frame.replica.device)
        if known and too_far_ahead(frame.replica.incarnation, known.incarnation):
            return "incarnation too far ahead"
        news = published.put(frame.replica.device, frame.version, partial)
        return "news" if news else "known"

    def _send_if_older(self, frame: VariableFrame, newest: int) -> None:
        """Publish an own entry again where the broker keeps an older one."""
        if newest and frame.version < Version.of(self._replica, newest):
            self._unsent.add(frame.variable)

    def _receive_state(self, frame: VariableFrame, changes: Changes, *, own: bool) -> str:
        name, held = frame.variable, self._fleet[frame.variable]
        encoded = frame.parts[0] if len(frame.parts) == 1 else None
        state = _fitting(encoded, held.bottom()) if isinstance(encoded, bytes) else None
        if state is None or state.bottom() != held.bottom() or frame.stream != NO_STREAM:
            return "another definition"
        news = not state <= held
        if news:
            self._join_fleet(name, state)
        if own and not state <= self._states[name]:  # the store was lost, the broker's copy not
            self._states[name] |= state
            self._note(name, state, changes)
        if own:
            self._send_if_older(frame, self._shared[name])
        return "news" if news else "known"

    def _join_fleet(self, name: str, state: Lattice) -> None:
        self._fleet[name] |= state
        self._fleet_digests.pop(name, None)

    def reports(self) -> tuple[Report, ...]:
        """Return what this device says of each variable in its beat."""
        found = [Report(n, p.seq, p.digest) for n, p in sorted(self._published.items())]
        found += [Report(n, seq, self._fleet_digest(n)) for n, seq in sorted(self._shared.items())]
        return tuple(found)

    def _fleet_digest(self, name: str) -> int:
        digest = self._fleet_digests.get(name)
        if digest is None:
            digest = variable_digest([text_hash(encode(self._fleet[name]).hex())])
            self._fleet_digests[name] = digest
        return digest

    def heard(self, beat: BeatFrame, now_us: int) -> list[str]:
        """Take a peer's reports; return the variables of which its entry should be asked for."""
        device = beat.replica.device
        return [
            report.variable
            for report in self.peers.heard(beat, now_us)
            if self.peers.behind(device, report.variable, lacking=self._lacks(beat, report))
        ]

    def _lacks(self, beat: BeatFrame, report: Report) -> bool:
        """Return whether the peer reports something that is not held here."""
        published = self._published.get(report.variable)
        if published is None:
            return report.digest != self._fleet_digest(report.variable)
        held = published.version(beat.replica.device)
        announced = Version.of(beat.replica, report.seq)
        return report.seq > 0 and (held is None or held < announced)

    def local(self) -> dict[str, Result]:
        """Return the local folds' targets."""
        return {
            name: Result(partial, "", 1, settled=True, offline=())
            for name, partial in sorted(self._local.items())
        }

    def fleet(self) -> dict[str, Result]:
        """Return the dynamic folds' targets."""
        return {name: self._result(fold) for name, fold in sorted(self._dynamic.items())}

    def shared(self) -> dict[str, object]:
        """Return the values of the shared variables."""
        return {name: state.value for name, state in sorted(self._fleet.items())}

    def _result(self, fold: DynamicFold) -> Result:
        published = self._published[fold.source.name]
        devices = published.devices
        others = [device for device in devices if device != self._replica.device]
        settled, offline = self.peers.agreement(fold.source.name, published.digest, others)
        inputs = inputs_digest(published.digest, fold.stream)
        return Result(
            published.combined(), inputs, len(devices), settled and bool(devices), offline
        )


def _bottoms(program: Program) -> dict[str, Lattice]:
    """Return the bottom of each variable that is no fold's target."""
    derived = program.local_folds.keys() | program.dynamic_folds.keys()
    return {
        name: variable.bottom
        for name, variable in program.variables.items()
        if variable.bottom is not None and name not in derived
    }


def _fitting(encoded: bytes, bottom: Lattice) -> Lattice | None:
    """Return the state if it is one of this kind, None else. A set may have other limits."""
    try:
        state = decode(encoded, max_bytes=STORED_BYTES)
    except ValueError:
        return None
    if type(state) is not type(bottom):
        return None
    return state if isinstance(state, BoundedLWWSet) or state.bottom() == bottom else None
