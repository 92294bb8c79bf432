"""A device's variables: its own states, the fleet's partials, and the folds over both.

A *dynamic* variable is this device's alone; a local fold turns it into one partial, which travels
as this device's entry of an `OwnedMap`. A *shared* variable is joined over the fleet; each device
publishes what it contributed itself. Targets of folds are derived: assigned from their inputs,
never joined and never sent as a state.

`Result.inputs` says what a fleet-wide value was made from: equal inputs, equal value, on every
tier. A variable is *settled* when every device in it last reported the digest that is held here;
devices that are offline and did not are named.
"""

from collections.abc import Sequence
from typing import NamedTuple

from crdts import BoundedLWWSet, Entry, Lattice, OwnedMap, Replica, Version
from crdts.wire import decode, encode
from device_agent.changes import Changes, Restored
from lasp_edge.fold import Partial
from lasp_edge.inputs import MODULUS, entry_hash, inputs_digest, text_hash, variable_digest
from lasp_edge.messages import BeatFrame, Report, VariableFrame
from lasp_edge.program import Change, DynamicFold, LocalFold, Program

DELTAS_PER_STATE = 64
"""After so many stored deltas a variable is stored whole."""

_NO_ENTRY_STREAM = 0


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


class _Published:
    """The entries of one local fold over the fleet, with sums kept up to date."""

    __slots__ = ("digest_sum", "entries", "fold", "hashes", "seq", "total")

    def __init__(self, fold: LocalFold) -> None:
        self.fold = fold
        self.entries = OwnedMap()
        self.hashes: dict[str, int] = {}
        self.digest_sum = 0
        self.seq = 0
        self.total: Partial | None = fold.fold.zero

    def put(self, device: str, version: Version, partial: Partial) -> bool:
        """Join one entry; return whether it was news."""
        before = self.entries.entries.get(device)
        if before is not None and version <= before.version:
            return False
        self.entries |= self.entries.put(version.replica(device), version.seq, partial)
        changed = entry_hash("", device, version, partial)
        self.digest_sum += changed - self.hashes.get(device, 0)
        self.hashes[device] = changed
        self._retotal(before, partial)
        return True

    def _retotal(self, before: Entry | None, partial: Partial) -> None:
        fold = self.fold.fold
        if self.total is None or not fold.invertible:
            self.total = None
            return
        gone = before.payload if before else fold.zero
        self.total = fold.combine(fold.retract(self.total, gone), partial)

    def combined(self) -> Partial:
        """Return the combination of all entries."""
        if self.total is None:
            total = self.fold.fold.zero
            for _, entry in sorted(self.entries.entries.items()):
                total = self.fold.fold.combine(total, entry.payload)
            self.total = total
        return self.total

    @property
    def digest(self) -> int:
        return (self.digest_sum + text_hash("")) % MODULUS


class Variables:
    """The variables of one device.

    Args:
        program: the program.
        replica: this life.
        restored: what the store holds of earlier lives; single-writer sets are adopted.
        changes: where the adopted states are noted.
    """

    def __init__(
        self, program: Program, replica: Replica, restored: Restored, changes: Changes
    ) -> None:
        self._program = program
        self._replica = replica
        self._folds = program.local_folds
        self._dynamic = program.dynamic_folds
        self._published = {name: _Published(f) for name, f in program.published_folds.items()}
        self._shared = {name: 0 for name in program.shared_variables}
        self._states: dict[str, Lattice] = {}
        self._fleet: dict[str, Lattice] = {}
        self._local: dict[str, Partial] = {}
        self._deltas: dict[str, int] = {}
        self._stale = set(self._folds)
        self._unsent: set[str] = set()
        self._reports: dict[str, dict[str, Report]] = {}
        self._replicas: dict[str, Replica] = {}
        self._online: dict[str, bool] = {}
        self._behind: dict[tuple[str, str], int] = {}
        self._restore(restored)
        self.become(replica, changes)

    def _restore(self, restored: Restored) -> None:
        for name, variable in self._program.variables.items():
            if variable.bottom is None or name in self._folds or name in self._dynamic:
                continue
            state = variable.bottom.copy()
            stored = restored.states.get(name)
            for encoded in [*([stored] if stored else []), *restored.deltas.get(name, ())]:
                state |= decode(encoded)
            self._states[name] = state
            if name in self._shared:
                self._fleet[name] = state.copy()

    def become(self, replica: Replica, changes: Changes) -> None:
        """Go on as another replica: single-writer sets and own entries move to its name."""
        self._replica = replica
        for name, state in self._states.items():
            if isinstance(state, BoundedLWWSet):
                state |= state.adopt(replica)
                self._store_whole(name, changes)
        for published in self._published.values():
            published.seq = 0
        self._shared = dict.fromkeys(self._shared, 1)
        self._stale = set(self._folds)
        self._local.clear()
        self._unsent = set(self._shared)

    def apply(self, requested: Sequence[Change], accepted_us: int) -> list[tuple[str, Lattice]]:
        """Join what a handler asked for, all of it or, on an error, nothing; return the deltas."""
        deltas: list[tuple[str, Lattice]] = []
        ahead: dict[str, Lattice] = {}
        for name, mutator, arguments in requested:
            state = ahead.get(name, self._states[name])
            delta = self._delta(state, mutator, arguments, accepted_us)
            deltas.append((name, delta))
            if len(requested) > 1:
                ahead[name] = state | delta
        for name, delta in deltas:
            self._states[name] |= delta
        return deltas

    def _delta(
        self, state: Lattice, mutator: str, arguments: tuple[object, ...], accepted_us: int
    ) -> Lattice:
        delta: Lattice
        if isinstance(state, BoundedLWWSet) and mutator == "add":
            value, time_us, *_ = (*arguments, accepted_us)
            delta = state.add(self._replica, value, time_us, accepted_us)
        else:
            delta = getattr(state, mutator)(self._replica, *arguments)
        return delta

    def record(self, deltas: dict[str, Lattice], changes: Changes) -> None:
        """Note joined deltas of a batch, by variable, and what they make stale."""
        for name, delta in sorted(deltas.items()):
            self._stale.update(t for t, fold in self._folds.items() if fold.source.name == name)
            if name in self._shared:
                self._fleet[name] |= delta
                self._shared[name] += 1
                self._unsent.add(name)
            self._deltas[name] = self._deltas.get(name, 0) + 1
            if self._deltas[name] >= DELTAS_PER_STATE:
                self._store_whole(name, changes)
            elif name in changes.states:
                changes.states[name] = encode(self._states[name])
            else:
                changes.deltas.append((name, encode(delta)))

    def _store_whole(self, name: str, changes: Changes) -> None:
        self._deltas[name] = 0
        changes.states[name] = encode(self._states[name])
        changes.deltas = [(other, delta) for other, delta in changes.deltas if other != name]

    def expire(self, now_us: int, changes: Changes) -> None:
        """Drop what is too old in sets that are bounded by age."""
        for name, state in self._states.items():
            if isinstance(state, BoundedLWWSet) and state.max_age_s is not None:
                delta = state.expire(now_us)
                if not delta <= state:
                    state |= delta
                    self.record({name: delta}, changes)

    def refold(self) -> None:
        """Bring local folds up to date; changed partials become this device's new entries."""
        for name in sorted(self._stale):
            fold = self._folds[name]
            state = self._states[fold.source.name]
            assert isinstance(state, BoundedLWWSet)
            if not state.complete:
                continue
            kept = state.samples()
            partial = fold.fold.lift_column([q for _, q, _ in kept], [t for t, _, _ in kept])
            if self._local.get(name) == partial:
                continue
            self._local[name] = partial
            if name in self._published:
                self._put_own(name, partial)
        self._stale.clear()

    def _put_own(self, name: str, partial: Partial) -> None:
        published = self._published[name]
        published.seq += 1
        published.put(self._replica.device, Version.of(self._replica, published.seq), partial)
        self._unsent.add(name)

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
                seq, stream = self._shared[name], _NO_ENTRY_STREAM
            else:
                published = self._published[name]
                parts = published.entries.entries[self._replica.device].payload
                seq, stream = published.seq, published.fold.stream
            frames.append(VariableFrame(self._replica, seq, name, stream, parts))
        self._unsent.clear()
        return frames

    def receive(self, frame: VariableFrame) -> str:
        """Join a peer's entry.

        Returns:
            What it was: "news", "known", "own" (this device's, not newer), "newer" (this
            device's, from a life that this one does not know), or why it was left aside.
        """
        own = frame.replica.device == self._replica.device
        if own and frame.replica > self._replica:
            return "newer"
        if frame.variable in self._shared:
            return self._receive_state(frame, own=own)
        published = self._published.get(frame.variable)
        if published is None or frame.stream != published.fold.stream:
            return "another definition"
        partial = tuple([part for part in frame.parts if not isinstance(part, bytes)])
        if not published.fold.fold.within_limits(partial):
            return "out of range"
        if own:
            return self._receive_own(frame, published.seq)
        news = published.put(frame.replica.device, frame.version, partial)
        return "news" if news else "known"

    def _receive_own(self, frame: VariableFrame, newest: int) -> str:
        if frame.version < Version.of(self._replica, newest):
            self._unsent.add(frame.variable)
        return "own"

    def _receive_state(self, frame: VariableFrame, *, own: bool) -> str:
        (encoded,) = frame.parts
        if not isinstance(encoded, bytes) or frame.stream != _NO_ENTRY_STREAM:
            return "another definition"
        try:
            state = decode(encoded)
        except ValueError:
            return "undecodable state"
        held = self._fleet[frame.variable]
        if type(state) is not type(held) or state.bottom() != held.bottom():
            return "another definition"
        news = not state <= held
        held |= state
        if own and not state <= self._states[frame.variable]:
            self._states[frame.variable] |= state
        return "news" if news else "known"

    def reports(self) -> tuple[Report, ...]:
        """Return what this device says of each variable in its beat."""
        found = [Report(n, p.seq, p.digest) for n, p in sorted(self._published.items())]
        found += [Report(n, seq, self._state_digest(n)) for n, seq in sorted(self._shared.items())]
        return tuple(found)

    def _state_digest(self, name: str) -> int:
        return variable_digest([text_hash(encode(self._fleet[name]).hex())])

    def heard(self, beat: BeatFrame) -> list[str]:
        """Take a peer's reports; return the variables of which its entry should be asked for."""
        device = beat.replica.device
        self._reports[device] = {report.variable: report for report in beat.reports}
        self._replicas[device] = beat.replica
        self._online[device] = True
        wanted = []
        for report in beat.reports:
            missing = self._is_behind(beat.replica, report)
            count = self._behind.get((device, report.variable), 0) + 1 if missing else 0
            self._behind[device, report.variable] = count
            if count > 1:
                wanted.append(report.variable)
        return wanted

    def _is_behind(self, replica: Replica, report: Report) -> bool:
        published = self._published.get(report.variable)
        if published is not None:
            held = published.entries.entries.get(replica.device)
            announced = Version.of(replica, report.seq)
            return report.seq > 0 and (held is None or held.version < announced)
        return report.variable in self._shared and (
            report.digest != self._state_digest(report.variable)
        )

    def presence(self, device: str, *, online: bool) -> None:
        """Note whether a device is connected."""
        self._online[device] = online

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
        settled, offline = self._agreement(fold.source.name, published)
        inputs = inputs_digest(published.digest, fold.stream)
        devices = len(published.entries.entries)
        return Result(published.combined(), inputs, devices, settled, offline)

    def _agreement(self, name: str, published: _Published) -> tuple[bool, tuple[str, ...]]:
        offline, settled = [], bool(published.entries.entries)
        for device in sorted(published.entries.entries):
            if device == self._replica.device:
                continue
            report = self._reports.get(device, {}).get(name)
            if report is not None and report.digest == published.digest:
                continue
            if self._online.get(device, False):
                settled = False
            else:
                offline.append(device)
        return settled, tuple(offline)
