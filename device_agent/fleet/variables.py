"""A device's variables: its own states, the fleet's partials, and the folds over both.

A *dynamic* variable is this device's alone; a local fold turns it into one partial, or one a key,
which travels as this device's entry of an `OwnedMap`. A *shared* variable is joined over the fleet;
each device publishes what it contributed itself. Targets of folds are derived: assigned from their
inputs, never joined and never sent as a state.

`Result.inputs` says what a fleet-wide value was made from: equal inputs, equal value, on every
tier. A variable is *settled* when every device that has it last reported the digest that is held
here; devices that are offline and did not are named. Retired devices are not waited for, and what
they said does not count.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crdts import BoundedLWWSet, Entry, Lattice, Membership, OwnedMap, Replica, Version
from crdts.wire import encode
from device_agent.fleet.derived import Derived
from device_agent.fleet.peers import Peers, too_far_ahead
from device_agent.fleet.pending_updates import PendingUpdates
from device_agent.fleet.room import Room
from device_agent.fleet.sets import Sets
from device_agent.state.changes import Changes, Restored
from device_agent.state.stored import Stored, fitting
from lasp_edge.aggregates.fleet import FleetFold, OutOfRangeError, columns_of, rows_of
from lasp_edge.aggregates.local import WindowFolds
from lasp_edge.folds.columns import Partial
from lasp_edge.folds.fold import Fold
from lasp_edge.language.declarations import DynamicFold, LocalFold, Variable
from lasp_edge.language.plan import Plan
from lasp_edge.language.updates import Change
from lasp_edge.protocol.frames import BeatFrame, Report, VariableFrame
from lasp_edge.protocol.inputs import inputs_digest, text_hash, variable_digest
from lasp_edge.protocol.shards import key_shard

TIME_LIMIT_US = 2**61
NO_STREAM = 0
"""The stream of a shared state: it has no fold."""


class Result(NamedTuple):
    """The value of a fold's target as this device holds it, of one key if it has keys.

    Attributes:
        partial: the integers and bytes.
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


class Agreement(NamedTuple):
    """How far the fleet agrees on a dynamic fold, all its keys together; see `Result`."""

    inputs: str
    devices: int
    settled: bool
    offline: tuple[str, ...]


class Variables:
    """The variables of one device.

    Args:
        program: the program.
        replica: this life.
        restored: what the store holds of earlier lives; single-writer sets are adopted.
        changes: where is noted what becomes of them.

    Attributes:
        left_aside: what could not be used, by reason; the core counts and clears it.
        derived: what follows from the shared variables here.
    """

    def __init__(
        self, program: Plan, replica: Replica, restored: Restored, changes: Changes
    ) -> None:
        self._replica = replica
        self._dynamic = program.dynamic_folds
        self._published_folds = program.published_folds
        self._published = {
            name: FleetFold(fold.fold, keyed=fold.keyed)
            for name, fold in self._published_folds.items()
        }
        self._shared = dict.fromkeys(program.shared_variables, 0)
        self._states: dict[str, Lattice] = {}
        self._fleet: dict[str, Lattice] = {}
        self._fleet_digests: dict[str, int] = {}
        self._unsent: set[tuple[str, int]] = set()
        self._retired: frozenset[str] = frozenset()
        self.left_aside: list[str] = []
        self.peers = Peers([*self._published, *self._shared])
        self.derived = Derived(program, replica)
        own = program.own_variables
        bounded = [v for v in own.values() if isinstance(v.bottom, BoundedLWWSet)]
        self._keyed = {variable.name for variable in bounded if variable.keyed}
        self._stored = Stored(restored.variables)
        self._sets = Sets(bounded, replica, self._stored)
        self._restore(own, restored, changes)
        folds = program.local_folds
        self._local_folds = {name: folds[name] for name in sorted(folds)}
        self._local = WindowFolds(_by_source(self._local_folds))
        self._careful: dict[str, list[Fold]] = {
            v.name: [f.fold for f in folds.values() if f.source is v and not f.fold.is_built_in]
            for v in bounded
        }
        self._rooms = {name: self._room(name) for name in sorted(self._keyed)}
        self.become(replica)

    def _restore(self, own: Mapping[str, Variable], restored: Restored, changes: Changes) -> None:
        """Take what the store holds; what no longer fits is left aside."""
        before = restored.facts.key_versions or {}
        grouped = {name: own[name].version for name in sorted(self._keyed)}
        if grouped != before:
            changes.facts.key_versions = grouped
        aside = 0
        for name, variable in own.items():
            assert variable.bottom is not None
            if name in self._sets.held:
                same = grouped.get(name) == before.get(name)
                aside += self._sets.restore(name, same, changes)
                continue
            state = variable.bottom.copy()
            for stored in self._stored.take(name, state).values():
                aside += stored is None
                state = state if stored is None else stored
            self._states[name] = state
        for name in self._shared:
            self._fleet[name] = self._states[name].copy()
            self.derived.joined(name, self._states[name])
        self.left_aside += ["variable: the store holds another definition"] * aside

    def _room(self, name: str) -> Room:
        folds = [f.fold for f in self._published_folds.values() if f.source.name == name]
        room = Room(name, folds)
        for key, state in self._sets.held[name].items():
            room.put(key, len(state))
        return room

    def become(self, replica: Replica) -> None:
        """Go on as another replica: single-writer sets and own entries move to its name."""
        self._replica = replica
        self._sets.become(replica)
        self._shared = dict.fromkeys(self._shared, 1)
        self._unsent = {(name, 0) for name in self._shared}
        for name, published in self._published.items():
            self._unsent.update((name, shard) for shard in published.begin(replica))

    def set_membership(self, membership: Membership) -> None:
        """Let the entries of retired devices count no more, and those of all others count."""
        self._retired = frozenset(membership.retired)
        for published in self._published.values():
            published.set_membership(membership)

    def is_careful(self, name: str) -> bool:
        """Return whether `check` must be asked about each sample of a variable.

        Only where a sample may be refused: there are keys, or folds of the user's own.
        """
        return name in self._keyed or bool(self._careful[name])

    def check(self, name: str, key: str, value: int, time_us: int) -> None:
        """Check that a sample can be added to a variable, and make room for it.

        Raises:
            ValueError: it cannot.
        """
        if type(time_us) is not int or not -TIME_LIMIT_US < time_us < TIME_LIMIT_US:
            raise ValueError(f"add to {name!r}: a time in microseconds is needed")
        for fold in self._careful[name]:
            if not fold.within_limits(fold.lift(value, time_us)):
                raise ValueError(f"add to {name!r}: the partial is out of range")
        if name in self._keyed:
            self._rooms[name].ask(key, self._sets.samples(name, key))

    def apply(self, requested: Sequence[Change], asked: PendingUpdates) -> None:
        """Take what handlers want for one reading, all of it or, on an error, nothing.

        Raises:
            ValueError: a change does not fit.
        """
        samples: list[tuple[tuple[str, str], Any, int]] = []
        deltas: list[tuple[str, Lattice]] = []
        ahead: dict[str, Lattice] = {}
        for name, mutator, arguments, key in requested:
            if name in self._careful:
                value, time_us, *_ = arguments
                self.check(name, key, value, time_us)
                samples.append(((name, key), value, time_us))
                continue
            # What others wrote counts, too: only what was observed can be removed.
            state = ahead[name] if name in ahead else self._whole(name)[name]
            deltas.append((name, getattr(state, mutator)(self._replica, *arguments)))
            if len(requested) > 1:
                ahead[name] = state | deltas[-1][1]
        columns = asked.samples
        for where, value, time_us in samples:
            known = columns.get(where)
            if known is None:
                known = columns[where] = ([], [])
            known[0].append(value)
            known[1].append(time_us)
        for name, delta in deltas:
            self._join(name, delta, asked)

    def _whole(self, name: str) -> dict[str, Lattice]:
        """Return where the whole of a variable is held: over the fleet, where it is shared."""
        return self._fleet if name in self._shared else self._states

    def _join(self, name: str, delta: Lattice, asked: PendingUpdates) -> None:
        self._whole(name)[name] |= delta
        if name in asked.deltas:
            asked.deltas[name] |= delta
        else:
            asked.deltas[name] = delta

    def record(self, asked: PendingUpdates, accepted_us: int, changes: Changes) -> None:
        """Join a batch's samples, and note what became of the variables.

        Args:
            asked: what the batch's handlers asked for.
            accepted_us: when it was accepted.
            changes: where the deltas go.
        """
        for where, (values, times_us) in sorted(asked.samples.items()):
            if values:
                self._sets.add(where, values, times_us, accepted_us, changes)
        for name, room in self._rooms.items():
            for key in room.asked():
                room.put(key, self._sets.samples(name, key))
        for name, delta in sorted(asked.deltas.items()):
            if name in self._shared:
                self._states[name] |= delta
            self._note(name, delta, changes)

    def _note(self, name: str, delta: Lattice, changes: Changes) -> None:
        """Note a joined delta of an own state."""
        if name in self._shared:
            self._join_fleet(name, delta)
            self._shared[name] += 1
            self._unsent.add((name, 0))
        self._stored.note((name, ""), self._states[name], delta, changes)

    def expire(self, now_us: int, changes: Changes) -> None:
        """Drop what is too old in sets that are bounded by age."""
        for name, key in self._sets.expire(now_us, changes):
            if name in self._rooms:
                self._rooms[name].put(key, self._sets.samples(name, key))

    def refold(self) -> None:
        """Bring local folds up to date; changed partials become this device's new entries."""
        for name, key, partial in self._local.refold(self._sets.take_moved(), self._sets.held):
            published = self._published.get(name)
            if published is not None:
                self._unsent.add((name, published.put_own(self._replica, key, partial)))
        self.left_aside += self._local.take_failures()

    def resend(self) -> None:
        """Publish all own entries again."""
        for name in (*self._shared, *self._published):
            self.ask(name)

    def ask(self, name: str) -> None:
        """A peer wants this device's entries of a variable."""
        published, me = self._published.get(name), self._replica.device
        if name in self._shared:
            self._unsent.add((name, 0))
        elif published is not None:
            own = [n for n in published.shards if published.entry(me, n)]
            self._unsent.update((name, shard) for shard in own)

    def take_unsent(self) -> list[VariableFrame]:
        """Return the entries that are to be published, coalesced."""
        unsent, self._unsent = sorted(self._unsent), set()
        return [
            self._shared_frame(name) if name in self._shared else self._partials_frame(name, shard)
            for name, shard in unsent
        ]

    def _partials_frame(self, name: str, shard: int) -> VariableFrame:
        fold, entry = (
            self._published_folds[name],
            self._published[name].entry(self._replica.device, shard),
        )
        assert entry is not None
        columns = columns_of(entry.payload)
        return VariableFrame(self._replica, entry.version.seq, name, fold.stream, shard, *columns)

    def _shared_frame(self, name: str) -> VariableFrame:
        number, state = self._shared[name], encode(self._states[name])
        return VariableFrame(
            self._replica, number, name, NO_STREAM, 0, ("",), (number,), ((state,),)
        )

    def receive(self, frame: VariableFrame, changes: Changes) -> str:
        """Join a peer's entry, or an own one that the broker kept.

        Returns:
            What it was: "news", "known", "own" (this device's, not newer), "newer" (this
            device's, from a life that this one does not know), or why it was left aside.
        """
        own = frame.sender.device == self._replica.device
        if own and frame.sender > self._replica:
            return "newer"
        if frame.variable in self._shared:
            return self._receive_state(frame, changes, own=own)
        if frame.variable in self._published:
            return self._receive_partials(frame, own=own)
        return "another definition"

    def _receive_partials(self, frame: VariableFrame, *, own: bool) -> str:
        fold, published = self._published_folds[frame.variable], self._published[frame.variable]
        if frame.stream != fold.stream:
            return "another definition"
        if not _has_shape(frame, keyed=fold.keyed):
            return "out of range"
        if own:
            held = published.entry(self._replica.device, frame.shard)
            self._send_if_older(frame, held.version if held is not None else None)
            return "own"
        known = published.version(frame.sender.device)
        if known and too_far_ahead(frame.sender.incarnation, known.incarnation):
            return "incarnation too far ahead"
        entry = Entry(frame.version, rows_of(frame.keys, frame.seqs, frame.columns))
        try:
            news = published.join(frame.shard, OwnedMap({frame.sender.device: entry}))
        except OutOfRangeError:
            return "out of range"
        return "news" if news else "known"

    def _send_if_older(self, frame: VariableFrame, held: Version | None) -> None:
        """Publish an own entry again where the broker keeps an older one."""
        if held and frame.version < held:
            self._unsent.add((frame.variable, frame.shard))

    def _receive_state(self, frame: VariableFrame, changes: Changes, *, own: bool) -> str:
        name, held = frame.variable, self._fleet[frame.variable]
        state = _state_of(frame, held.bottom())
        if state is None:
            return "another definition"
        news = not state <= held
        if news:
            self._join_fleet(name, state)
        if own and not state <= self._states[name]:  # the store was lost, the broker's copy not
            self._states[name] |= state
            self._note(name, state, changes)
        if own:
            self._send_if_older(frame, Version.of(self._replica, self._shared[name]))
        return "news" if news else "known"

    def _join_fleet(self, name: str, state: Lattice) -> None:
        self._fleet[name] |= state
        self.derived.joined(name, state)
        self._fleet_digests.pop(name, None)

    def reports(self) -> tuple[Report, ...]:
        """Return what this device says of each variable in its beat."""
        me = self._replica.device
        found = [
            Report(name, published.seq, published.digest, published.device_digest(me))
            for name, published in sorted(self._published.items())
        ]
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
        device = beat.sender.device
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
        held = published.version(beat.sender.device)
        announced = Version.of(beat.sender, report.seq)
        if report.seq == 0 or (held is not None and held > announced):
            return False
        shards_missing = report.own not in {None, published.device_digest(beat.sender.device)}
        return held != announced or shards_missing

    def local(self) -> dict[str, Result]:
        """Return the targets of local folds without keys."""
        return {
            name: _here(self._local.partials(name)[""])
            for name, fold in self._local_folds.items()
            if not fold.keyed and "" in self._local.partials(name)
        }

    def local_by_key(self) -> dict[str, dict[str, Result]]:
        """Return the targets of local folds with keys, by key."""
        return {
            name: {key: _here(partial) for key, partial in self._local.partials(name).items()}
            for name, fold in self._local_folds.items()
            if fold.keyed
        }

    def fleet(self) -> dict[str, Result]:
        """Return the targets of dynamic folds without keys."""
        return {
            name: self._result(fold, "", self._agreement(fold))
            for name, fold in sorted(self._dynamic.items())
            if not fold.keyed
        }

    def fleet_by_key(self) -> dict[str, dict[str, Result]]:
        """Return the targets of dynamic folds with keys, by key."""
        found = {}
        for name, fold in sorted(self._dynamic.items()):
            if fold.keyed:
                agreement = self._agreement(fold)
                keys = self._published[fold.source.name].keys
                found[name] = {key: self._result(fold, key, agreement) for key in keys}
        return found

    def agreements(self) -> dict[str, Agreement]:
        """Return how far the fleet agrees on each dynamic fold."""
        return {name: self._agreement(fold) for name, fold in sorted(self._dynamic.items())}

    def shared(self) -> dict[str, object]:
        """Return the values of the shared variables."""
        return {name: state.value for name, state in sorted(self._fleet.items())}

    def _agreement(self, fold: DynamicFold) -> Agreement:
        published = self._published[fold.source.name]
        devices = published.devices
        others = [device for device in devices if device != self._replica.device]
        settled, offline = self.peers.agreement(
            fold.source.name, published.digest, others, self._retired
        )
        inputs = inputs_digest(published.digest, fold.stream)
        return Agreement(inputs, len(devices), settled and bool(devices), offline)

    def _result(self, fold: DynamicFold, key: str, agreement: Agreement) -> Result:
        total = self._published[fold.source.name].total(key)
        inputs = inputs_digest(total.digest, fold.stream)
        return Result(total.partial, inputs, total.devices, agreement.settled, agreement.offline)


def _here(partial: Partial) -> Result:
    return Result(partial, "", 1, settled=True, offline=())


def _by_source(folds: Mapping[str, LocalFold]) -> dict[str, dict[str, Fold]]:
    """Return source -> target -> fold."""
    found: dict[str, dict[str, Fold]] = {}
    for name, fold in folds.items():
        found.setdefault(fold.source.name, {})[name] = fold.fold
    return found


def _has_shape(frame: VariableFrame, *, keyed: bool) -> bool:
    """Return whether shard, keys and seqs can be those of such a variable."""
    if not frame.number or not all(frame.seqs):
        return False
    if not keyed:
        return (frame.shard, frame.keys) == (0, ("",))
    return "" not in frame.keys or frame.shard == key_shard("")  # others were looked at before


def _state_of(frame: VariableFrame, bottom: Lattice) -> Lattice | None:
    """Return the shared state in a frame; None where there is none of this kind."""
    if frame.stream != NO_STREAM or (frame.shard, frame.keys, len(frame.columns)) != (0, ("",), 1):
        return None
    (encoded,) = frame.columns[0]
    state = fitting(encoded, bottom) if isinstance(encoded, bytes) else None
    return state if state is not None and state.bottom() == bottom else None
