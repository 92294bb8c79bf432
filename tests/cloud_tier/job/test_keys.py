"""Dynamic folds by key and under a membership, through the real step."""

import random
from functools import reduce

import pytest

from cloud_tier.job import dynamic, frames
from cloud_tier.job import step as steps
from cloud_tier.job.maintenance import compact
from cloud_tier.job.repair import repair
from crdts import BoundedLWWSet, Membership, Replica, Version
from lasp_edge import Program, folds
from lasp_edge.protocol.inputs import entry_hash, inputs_digest, membership_text, variable_digest
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from tests.cloud_tier.lakes import LakeUnderTest, batches
from tests.cloud_tier.support_devices import BEGIN_US, SECOND_US, row, tick

pytestmark = pytest.mark.spark


def by_room():
    """A program with two dynamic folds over one keyed variable, and one without keys."""
    program = Program("by room")
    event = program.event("temperature", resolution="0.01")
    keyed = program.declare_dynamic(BoundedLWWSet(bound=5), "keyed", key=lambda e: e.tags["room"])
    plain = program.declare_dynamic(BoundedLWWSet(bound=5), "plain")
    program.collect(event, into=keyed)
    program.collect(event, into=plain)
    mixed = folds.struct(n=folds.count(), seen=folds.distinct(8), last=folds.last())
    local = program.fold(keyed, mixed, "local")
    program.fold_dynamic(local, "fleet")
    program.fold_dynamic(local, "fleet again")
    program.fold_dynamic(program.fold(plain, folds.mean(), "mean"), "fleet mean")
    return program.plan()


PROGRAM = by_room()
LOCAL, MEAN = PROGRAM.published_folds["local"], PROGRAM.published_folds["mean"]
NAMES = {name: fold.source for name, fold in PROGRAM.dynamic_folds.items()}


class Owner:
    """A device's partials of both variables, and the rows that its frames become."""

    def __init__(self, name):
        self.name, self.replica, self.seq = name, Replica(1, 7, name), 0
        self.shards = {}  # (stream, shard) -> (version, {key: (seq, partial)})

    def says(self, local, key, *values):
        """Replace one key's samples; without any the key goes. Return the shard's rows."""
        at = (local.stream, key_shard(key) if local is LOCAL else 0)
        self.seq += 1
        _, words = self.shards.get(at, (None, {}))
        words = {k: word for k, word in words.items() if k != key}
        if values:
            words[key] = (self.seq, local.fold.lift_column(values, range(len(values))))
        self.shards[at] = (Version.of(self.replica, self.seq), words)
        return self._rows(local, at)

    def begins_again(self):
        """Begin another life: adopt all that is known under its name. Return the rows."""
        self.replica, rows = self.replica._replace(incarnation=self.replica.incarnation + 1), []
        self.seq = 0
        for (stream, shard), (_, words) in sorted(self.shards.items()):
            adopted = {}
            for key in sorted(words):
                self.seq += 1
                adopted[key] = (self.seq, words[key][1])
            self.seq += not adopted
            self.shards[stream, shard] = (Version.of(self.replica, self.seq), adopted)
            rows += self._rows(LOCAL if stream == LOCAL.stream else MEAN, (stream, shard))
        return rows

    def _rows(self, local, at):
        version, words = self.shards[at]
        where = {"stream": at[0], "shard": at[1]}
        if not words:
            return [row("variable", self.name, *version, **where, key=None, changed=version.seq)]
        names = local.fold.columns_named
        return [
            row("variable", self.name, *version, **where, key=key, changed=seq)
            | dict(zip(names, partial, strict=True))
            for key, (seq, partial) in words.items()
        ]


def member_row(membership, device):
    member = membership.entries[device]
    return row("member", device, *member.version, control=member.control, retired=member.retired)


def truth(owners, membership=None):
    """Return (fold, key) -> (partial, inputs, devices in) of what somebody has who counts."""
    membership = membership or Membership()
    found = {}
    for name, local in NAMES.items():
        entries = {}
        for owner in owners:
            for (stream, _), (version, words) in owner.shards.items():
                if stream == local.stream and owner.name not in membership.retired:
                    for key, (seq, partial) in words.items():
                        at = (owner.name, version._replace(seq=seq), partial)
                        entries.setdefault(key, []).append(at)
        stream = PROGRAM.dynamic_folds[name].stream
        for key, having in entries.items():
            hashes = [entry_hash(key, *entry) for entry in having]
            digest = variable_digest(hashes, membership_text(membership))
            partial = reduce(local.fold.combine, [entry[2] for entry in having])
            found[name, key] = (partial, inputs_digest(digest, stream), len(having))
    return found


@pytest.fixture
def lake(spark, tmp_path):
    return LakeUnderTest(spark, PROGRAM, tmp_path)


def test_each_key_is_folded_over_its_devices_with_their_inputs(lake, monkeypatch):
    """Of few rows and of many, which go through Spark as they lie."""
    draw = random.Random(3)
    owners, rows = [Owner(f"pi-{n}") for n in range(3)], []
    for _ in range(60):
        owner, key = draw.choice(owners), f"room {draw.randrange(12)}"
        values = [draw.randrange(-(2**31) + 1, 2**31) for _ in range(draw.randrange(12))]
        rows += owner.says(LOCAL, key, *values)
        rows += owner.says(MEAN, "", draw.randrange(1000))
        if draw.random() < 0.1:
            rows += owner.begins_again()
    for batch, most in zip(batches(rows, 3, count=2), (frames.MOST_ROWS, 0), strict=True):
        monkeypatch.setattr(frames, "MOST_ROWS", most)
        lake.step(batch)
    assert lake.globals_there() == truth(owners)
    assert len(lake.globals_there()) > 20
    before = len(lake.rows(lake.lake.globals))
    lake.restart()
    assert lake.step(rows).globals == 0
    assert len(lake.rows(lake.lake.globals)) == before


def test_key_that_went_is_a_row_of_nothing_and_can_come_back(lake):
    one, other = Owner("pi-0"), Owner("pi-1")
    lake.step(one.says(LOCAL, "attic", 5) + other.says(LOCAL, "attic", 7))
    gone = one.says(LOCAL, "attic")
    assert [r["key"] for r in gone] == [None], "an entry without keys"
    lake.step(gone)
    assert lake.globals_there() == truth([one, other])
    gone = other.says(LOCAL, "attic")
    lake.step(gone)
    nothing = (LOCAL.fold.zero, inputs_digest(variable_digest([]), stream_of("fleet")), 0, 2)
    assert lake.globals()["fleet", "attic"] == nothing
    assert lake.step(gone).globals == 0, "one row is enough"
    lake.step(one.says(LOCAL, "attic", 5, 6))
    assert lake.globals()["fleet", "attic"] == (*truth([one, other])["fleet", "attic"], 3)


def test_driver_forgets_keys_that_went_and_looks_them_up_when_they_come_back(lake, monkeypatch):
    monkeypatch.setattr(dynamic, "GONE_KEPT", 1)
    owner = Owner("pi-0")
    for key in ("attic", "cellar"):
        lake.step(owner.says(LOCAL, key, 5))
        lake.step(owner.says(LOCAL, key))
    assert lake.known.current_rows == {}
    lake.step(owner.says(LOCAL, "attic", 5, 6) + owner.says(LOCAL, "hall", 1))
    assert lake.globals_there() == truth([owner])
    assert lake.globals()["fleet", "attic"].revision == 2, "counts go on"
    assert {key for _, key in lake.known.current_rows} == {"attic", "hall"}


def stream_of(name):
    return PROGRAM.dynamic_folds[name].stream


def test_key_that_is_missing_in_the_newest_entry_is_gone_whatever_comes_late(lake):
    keys = [key for key in map(str, range(400)) if key_shard(key) == key_shard("0")][:3]
    owner = Owner("pi-0")
    old = owner.says(LOCAL, keys[0], 1) + owner.says(LOCAL, keys[1], 1)
    owner.says(LOCAL, keys[2], 1)
    new = owner.says(LOCAL, keys[0])
    assert len(new) == 2
    lake.step(new)
    lake.step(old)
    assert lake.globals_there() == truth([owner])
    assert {key for _, key in lake.globals_there()} == set(keys[1:])
    again = owner.begins_again()
    assert {r["seq"] for r in again} == {old[-1]["seq"]}, "lives count from 1, each"
    lake.step(again)
    assert lake.globals_there() == truth([owner])


def test_word_on_a_member_alone_makes_the_values_anew(lake):
    owners = [Owner(f"pi-{n}") for n in range(3)]
    rows = [r for n, o in enumerate(owners) for r in o.says(LOCAL, f"room {n % 2}", n, 8)]
    rows += [r for o in owners for r in o.says(MEAN, "", 5)]
    lake.step(rows)
    membership = Membership()
    membership |= membership.retire("pi-1", Version(1, 7, 3))
    outcome = lake.step([member_row(membership, "pi-1")])
    assert (outcome.variables, outcome.panes) == (1, 0)
    assert lake.globals_there() == truth(owners, membership)
    alone = lake.globals()["fleet", "room 1"]
    assert (alone.partial, alone.devices_in) == (LOCAL.fold.zero, 0), "only pi-1 had it"
    late = owners[1].says(LOCAL, "room 1", 9)
    assert lake.step(late).globals == 0, "kept, and counts again later"
    membership |= membership.admit("pi-1")
    lake.restart()
    lake.step([member_row(membership, "pi-1")])
    assert lake.globals_there() == truth(owners, membership)
    assert len(lake.globals_there()) == 2 * 2 + 1


def test_value_without_keys_says_that_all_were_retired_and_follows_the_membership(lake):
    owner = Owner("pi-0")
    lake.step(owner.says(MEAN, "", 5) + owner.says(LOCAL, "attic", 5))
    membership = Membership()
    for device in ("pi-0", "pi-9"):
        membership |= membership.retire(device, Version(1, 7, 3))
        lake.step([member_row(membership, device)])
        digest = variable_digest([], membership_text(membership))
        nothing = (MEAN.fold.zero, inputs_digest(digest, stream_of("fleet mean")), 0)
        assert lake.globals()["fleet mean", ""][:3] == nothing
        assert lake.globals()["fleet", "attic"].revision == 1, "a key that went has no further rows"


def test_greater_control_wins_whatever_order_words_come_in(lake):
    owner = Owner("pi-0")
    lake.step(owner.says(MEAN, "", 5))
    membership, words = Membership(), []
    for _ in range(4):
        membership |= membership.retire("pi-0", Version(1, 7, 3))
        words.append(member_row(membership, "pi-0"))
        membership |= membership.admit("pi-0")
        words.append(member_row(membership, "pi-0"))
    lake.step([*words[::-1], words[1]])
    lake.step([words[2]])
    assert lake.known.liveness.membership == membership
    assert lake.globals_there() == truth([owner], membership)
    known = lake.known
    lake.restart()
    assert lake.known._replace(control=known.control, is_first=False) == known


@pytest.mark.parametrize("kind", ["key", "member"])
def test_batch_that_died_before_the_globals_is_done_again(lake, monkeypatch, kind):
    one, other = Owner("pi-0"), Owner("pi-1")
    lake.step(one.says(LOCAL, "attic", 5) + other.says(LOCAL, "attic", 7))
    membership = Membership()
    membership |= membership.retire("pi-1", Version(1, 7, 3))
    if kind == "key":
        rows, membership = one.says(LOCAL, "cellar", 6) + one.says(LOCAL, "attic"), Membership()
    else:
        rows = [member_row(membership, "pi-1")]

    def die(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(steps, "append_globals", die)
        with pytest.raises(RuntimeError, match="killed"):
            lake.step(rows)
    lake.restart()
    lake.step(rows)
    assert lake.globals_there() == truth([one, other], membership)
    before = lake.rows(lake.lake.globals)
    assert lake.step(rows).globals == 0
    assert repair(lake.spark, lake.job, lake.known) == 0
    assert lake.rows(lake.lake.globals) == before


def test_globals_are_read_at_a_start_only(lake, monkeypatch):
    """However long their history is, a step compares with the rows that the driver holds."""
    owner = Owner("pi-0")
    lake.step(owner.says(LOCAL, "attic", 5))
    known = lake.known
    lake.restart()
    assert lake.known._replace(control=known.control, is_first=False) == known
    assert lake.known.current_rows.keys() == {("fleet", "attic"), ("fleet again", "attic")}

    select = lake.job.tables.select

    def checked(path, query):
        assert path != lake.lake.globals
        return select(path, query)

    monkeypatch.setattr(lake.job.tables, "select", checked)
    assert lake.step(owner.says(LOCAL, "attic", 6)).globals == 2
    assert lake.globals_there() == truth([owner])


def test_compaction_drops_what_newer_entries_replace_and_keeps_the_view(lake):
    owners, rows = [Owner(f"pi-{n}") for n in range(2)], []
    for n in range(40):
        rows += owners[n % 2].says(LOCAL, f"room {n % 7}", n)
    rows += owners[0].says(LOCAL, "room 0")
    rows += owners[1].begins_again()
    membership = Membership()
    membership |= membership.retire("pi-1", Version(1, 7, 3))
    membership |= membership.admit("pi-1")
    words = [member_row(membership, "pi-1"), tick(1, BEGIN_US)]
    for batch in batches(rows, 3, count=2):
        lake.step([*batch, *words])
    assert lake.globals_there() == truth(owners, membership)
    compact(lake.spark, lake.job, ["1970-01-01"])
    stored = lake.rows(lake.lake.lattice)
    kept = [r for r in stored if r["kind"] == "variable"]
    standing = {
        (owner.name, stream, shard, version, key)
        for owner in owners
        for (stream, shard), (version, words) in owner.shards.items()
        for key in (words or [None])
    }
    found = [
        (r["device"], r["stream"], r["shard"], (r["incarnation"], r["nonce"], r["seq"]), r["key"])
        for r in kept
    ]
    assert set(found) == standing
    assert len(found) == len(standing)
    assert len([r for r in stored if r["kind"] == "member"]) == 1
    known = lake.known
    lake.restart()
    assert lake.known._replace(control=known.control, is_first=False) == known
    assert lake.step(rows).globals == 0


def test_frontier_passes_a_device_that_was_retired(lake):
    def promise(device, low_us):
        promised = {"low_us": low_us, "done": False, "received_us": BEGIN_US + 70 * SECOND_US}
        return row("promise", device, 1, 7, 1, **promised)

    clock = tick(1, BEGIN_US + 71 * SECOND_US, BEGIN_US)
    lake.step([promise("pi-0", BEGIN_US + 9), promise("pi-1", BEGIN_US + 5), clock])
    assert lake.known.frontier == BEGIN_US + 5
    membership = Membership()
    membership |= membership.retire("pi-1", Version(1, 7, 3))
    outcome = lake.step([member_row(membership, "pi-1")])
    assert outcome.coverage == (BEGIN_US + 9, ("pi-0",), ())


def test_thousands_of_keys_of_which_few_change(lake):
    owner, keys = Owner("pi-0"), [f"room {n}" for n in range(3_000)]
    for key in keys:
        owner.says(LOCAL, key, len(key))
    whole = [r for shard in range(KEY_SHARDS) for r in owner._rows(LOCAL, (LOCAL.stream, shard))]
    assert lake.step(whole).globals == 2 * len(keys)
    changed = owner.says(LOCAL, keys[5], 1, 2, 3)
    assert len(changed) > 100
    assert lake.step(changed).globals == 2
    assert lake.globals_there() == truth([owner])
