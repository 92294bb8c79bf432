"""Entries of a fold over the fleet: what is kept up to date equals what is made again."""

from functools import reduce

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crdts import Entry, Membership, OwnedMap, Replica, Version
from lasp_edge import folds
from lasp_edge.aggregates.absence import Absent, PresentFold
from lasp_edge.aggregates.fleet import FleetFold, OutOfRangeError
from lasp_edge.protocol.entries import columns_of, rows_of
from lasp_edge.protocol.inputs import MODULUS, entry_hash, membership_text, variable_digest
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from tests.laws import LATTICE_LAWS

KEYS = ["", *(f"room-{n}" for n in range(30))]
SHARDS = sorted({key_shard(key) for key in KEYS})
DEVICES = ["a", "b", "c"]
FOLDS = [folds.mean(), folds.struct(low=folds.min(), high=folds.max()), folds.top(2)]
ME = Replica(1, 7, "me")


def made(fold):
    return FleetFold(fold, keyed=True)


def entry(replica, number, rows):
    """Return the delta of a device's entry; `rows` is key -> (seq, partial)."""
    payload = tuple((key, *rows[key]) for key in sorted(rows))
    return OwnedMap({replica.device: Entry(Version.of(replica, number), payload)})


@st.composite
def deltas(draw, fold):
    """Return a shard and an entry of some device: some of its keys, each with its own seq."""
    shard, number = draw(st.sampled_from(SHARDS)), draw(st.integers(1, 9))
    of_shard = [key for key in KEYS if key_shard(key) == shard]
    replica = Replica(
        draw(st.integers(1, 2)), draw(st.integers(0, 1)), draw(st.sampled_from(DEVICES))
    )
    rows = {}
    for key in draw(st.sets(st.sampled_from(of_shard))):
        values = draw(st.lists(st.integers(-9, 9), min_size=1, max_size=3))
        partial = fold.lift_column(values, [0] * len(values))
        rows[key] = (draw(st.integers(1, number)), partial)
    return shard, entry(replica, number, rows)


class Plain:
    """What `FleetFold` means: the newest entry of each (device, shard), looked at each time."""

    def __init__(self, fold):
        self.fold, self.entries, self.membership = fold, {}, Membership()

    def put(self, shard, delta):
        ((device, entry),) = delta.entries.items()
        self.entries[device, shard] = entry

    def rows(self, *, everybody=False):
        """Yield (key, device, version, partial) of what counts."""
        for (device, _), entry in self.entries.items():
            if everybody or device not in self.membership.retired:
                for key, seq, partial in entry.payload:
                    yield key, device, entry.version._replace(seq=seq), partial

    def check(self, published):
        rows, text = list(self.rows()), membership_text(self.membership)
        assert published.digest == variable_digest([entry_hash(*row) for row in rows], text)
        assert published.keys == sorted({row[0] for row in rows})
        there = {device for device, _ in self.entries} - self.membership.retired.keys()
        assert published.devices == sorted(there)
        for key in KEYS:
            mine = [row for row in rows if row[0] == key]
            total = published.total(key)
            partials = [partial for *_, partial in sorted(mine, key=lambda row: row[1])]
            assert total.partial == reduce(self.fold.combine, partials, self.fold.zero)
            assert total.digest == variable_digest([entry_hash(*row) for row in mine], text)
            assert total.devices == len(mine)
        for device in DEVICES:
            own = [entry_hash(*w) for w in self.rows(everybody=True) if w[1] == device]
            assert published.device_digest(device) == sum(own) % MODULUS


@pytest.mark.parametrize("fold", FOLDS, ids=repr)
def test_what_is_kept_up_to_date_is_what_is_made_anew(fold):
    decisions = st.tuples(st.sampled_from(DEVICES), st.booleans())

    @settings(max_examples=60)
    @given(st.lists(deltas(fold) | decisions, max_size=25))
    def check(history):
        fleet, plain = made(fold), Plain(fold)
        for first, second in history:
            if isinstance(second, OwnedMap):
                ((device, newer),) = second.entries.items()
                before = plain.entries.get((device, first))
                is_news = fleet.join(first, second)
                if before is None or newer.version > before.version:
                    assert is_news
                if is_news:
                    plain.put(first, second)
                    assert before is None or newer.version >= before.version
            else:
                known = plain.membership
                known |= known.retire(first, Version(1, 1, 1)) if second else known.admit(first)
                fleet.set_membership(known)
            plain.check(fleet)

    check()


@pytest.mark.parametrize("fold", FOLDS, ids=repr)
def test_any_order_of_entries_ends_alike(fold):
    @settings(max_examples=40)
    @given(st.lists(deltas(fold), max_size=15), st.randoms())
    def check(history, shuffled):
        one, other, again = made(fold), made(fold), [*history, *history]
        shuffled.shuffle(again)
        for delta in history:
            one.join(*delta)
        for delta in again:
            other.join(*delta)
        assert one.digest == other.digest
        assert [one.total(key) for key in KEYS] == [other.total(key) for key in KEYS]
        assert [one.state(shard) for shard in one.shards] == [other.state(n) for n in other.shards]

    check()


@pytest.mark.parametrize("fold", FOLDS, ids=repr)
def test_own_entries_give_the_same_totals_elsewhere(fold):
    changes = st.tuples(st.sampled_from(KEYS), st.none() | st.integers(-9, 9))

    @settings(max_examples=40)
    @given(st.lists(changes | st.just("a new life"), max_size=20))
    def check(history):
        here, there, me = made(fold), made(fold), ME
        unsent, held = set(here.begin(me)), {}
        assert unsent == set(range(KEY_SHARDS))
        for step in history:
            if step == "a new life":
                me = me._replace(incarnation=me.incarnation + 1)
                unsent |= set(here.begin(me))
            else:
                key, value = step
                partial = None if value is None else fold.lift(value, 0)
                unsent.add(here.put_own(me, key, partial))
                held[key] = partial
        for shard in sorted(unsent):
            own = here.entry(me.device, shard)
            keys, seqs, columns = columns_of(own.payload)
            assert all(0 < seq <= own.version.seq for seq in seqs)
            assert rows_of(keys, seqs, columns) == own.payload
            assert there.join(shard, here.state(shard))
        held = {key: partial for key, partial in held.items() if partial is not None}
        assert here.keys == there.keys == sorted(held)
        assert here.digest == there.digest
        assert {key: there.total(key).partial for key in held} == held

    check()


def test_two_entries_of_one_version_are_a_clones_and_one_of_them_stands():
    fold = folds.mean()
    shard = key_shard("room-1")
    several = [
        entry(ME, 3, rows)
        for rows in [
            {"room-1": (3, (1, 5))},
            {"room-1": (3, (1, 6))},
            {"room-1": (2, (1, 5))},
            {},
        ]
    ]
    digests = set()
    for first in range(4):
        fleet = made(fold)
        for delta in (*several[first:], *several[:first]):
            fleet.join(shard, delta)
        digests.add(fleet.digest)
    assert len(digests) == 1


def test_an_entry_with_a_partial_that_no_device_can_have_is_refused_whole():
    fleet, shard = made(folds.mean()), key_shard("room-1")
    delta = entry(ME, 3, {"room-1": (3, (1, 2**70))}) | entry(
        Replica(1, 1, "you"), 1, {"room-1": (1, (1, 5))}
    )
    with pytest.raises(OutOfRangeError, match=r"needs its partials, got .* of 'me'"):
        fleet.join(shard, delta)
    assert (fleet.devices, fleet.state(shard)) == ([], OwnedMap())


def test_the_replicated_state_keeps_the_laws_of_a_lattice():
    """What a fleet fold holds of a shard, after any entries of any devices."""
    fold = FOLDS[1]

    @st.composite
    def held(draw):
        fleet = made(fold)
        for shard, delta in draw(st.lists(deltas(fold), max_size=6)):
            fleet.join(shard, delta)
        return fleet.state(draw(st.sampled_from(SHARDS[:2])))

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(held(), held(), held())
    def check(a, b, c):
        for law in LATTICE_LAWS:
            law(a, b, c)

    check()


PARTIALS = st.just((0, 0)) | st.tuples(st.integers(1, 50), st.integers(-5_000, 5_000))
EXTREMES = st.just((0, None, None)) | st.tuples(
    st.integers(1, 9), st.integers(-99, 99), st.integers(-99, 99)
)
VERSIONS = st.builds(Version, st.integers(1, 3), st.integers(0, 2), st.integers(1, 5))
SEVERAL = st.sampled_from(["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("fold", "partials"),
    [
        (folds.mean(), PARTIALS),
        (folds.struct(n=folds.count(), low=folds.min(), high=folds.max()), EXTREMES),
    ],
    ids=["with an inverse", "without"],
)
def test_the_fleets_value_equals_the_recomputation_in_order_of_devices(fold, partials):
    @given(st.lists(st.tuples(SEVERAL, VERSIONS, partials), max_size=30), st.randoms())
    def check(history, shuffled):
        published, mirrored = FleetFold(fold), FleetFold(fold)
        newest = OwnedMap()
        for device, version, partial in history:
            delta = entry(version.replica(device), version.seq, {"": (version.seq, partial)})
            published.join(0, delta)
            newest |= delta
            partials = [rows[0][2] for rows in newest.value.values()]
            assert published.total("").partial == reduce(fold.combine, partials, fold.zero)
            assert published.total("").devices == sum(each[0] > 0 for each in partials)
        assert published.state(0) == newest
        hashes = [entry_hash("", d, e.version, e.payload[0][2]) for d, e in newest.entries.items()]
        assert published.digest == published.total("").digest == variable_digest(hashes)
        again = [*history, *history]
        shuffled.shuffle(again)
        for device, version, partial in again:
            delta = entry(version.replica(device), version.seq, {"": (version.seq, partial)})
            mirrored.join(0, delta)
        assert mirrored.digest == published.digest
        assert mirrored.total("") == published.total("")

    check()


@pytest.mark.parametrize(
    ("fold", "partials", "having"),
    [
        (folds.mean(), {"a": (2, 50), "b": (0, 0)}, 1),
        (folds.mean(), {"a": (0, 0), "b": (0, 0)}, 0),
        (folds.max(), {"a": (-3,), "b": (None,)}, 1),
        (folds.sum(), {"a": (50,), "b": (0,)}, 2),  # which may be that of a reading of 0
    ],
)
def test_a_device_without_a_sample_is_not_in_the_value(fold, partials, having):
    fleet = FleetFold(fold)
    for number, (device, partial) in enumerate(partials.items()):
        fleet.put_own(Replica(1, number, device), "", partial)
    assert fleet.total("").devices == having
    assert PresentFold(fleet, FleetFold(Absent(), keyed=True)).total("").devices == having
    some = next(partial for partial in partials.values())
    fleet.put_own(Replica(1, 1, "b"), "", some)
    assert fleet.total("").devices == 2 * (some != fold.zero or fold.zero == (0,))
    fleet.put_own(Replica(1, 0, "a"), "", fold.zero)
    fleet.put_own(Replica(1, 1, "b"), "", None)
    assert fleet.total("").devices == (fold.zero == (0,))


@pytest.mark.parametrize("noting", [("a", "b"), ("b", "a")])
def test_of_the_notes_on_an_absent_device_the_greatest_stands_whoever_made_it(noting):
    fleet, notes = FleetFold(folds.mean()), FleetFold(Absent(), keyed=True)
    before, last = Version(1, 7, 1), Version(1, 7, 2)
    fleet.join(0, entry(Replica(1, 7, "c"), 2, {"": (2, (2, 50))}))
    present = PresentFold(fleet, notes)
    for device in noting:
        assert present.devices == (["c"] if device == noting[0] or noting == ("a", "b") else [])
        notes.put_own(Replica(1, 3, device), "c", tuple(last if device == "b" else before))
    assert present.devices == []
