"""Entries of a fold over the fleet: what is kept up to date equals what is made anew."""

from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import Membership, Replica, Version
from device_agent.published import Published
from lasp_edge import folds
from lasp_edge.protocol.frames import VariableFrame
from lasp_edge.protocol.inputs import MODULUS, entry_hash, membership_text, variable_digest
from lasp_edge.protocol.shards import KEY_SHARDS, key_shard
from tests.device_agent.agents import rooms

KEYS = ["", *(f"room-{n}" for n in range(30))]
SHARDS = sorted({key_shard(key) for key in KEYS})
DEVICES = ["a", "b", "c"]
FOLDS = [folds.mean(), folds.struct(low=folds.min(), high=folds.max()), folds.top(2)]
ME = Replica(1, 7, "me")


def made(fold):
    return Published(rooms(fold).published_folds["here"])


@st.composite
def frames(draw, fold):
    """Return an entry of some device: some keys of one shard, each with its own seq."""
    shard, number = draw(st.sampled_from(SHARDS)), draw(st.integers(1, 9))
    of_shard = [key for key in KEYS if key_shard(key) == shard]
    keys = tuple(sorted(draw(st.sets(st.sampled_from(of_shard)))))
    replica = Replica(
        draw(st.integers(1, 2)), draw(st.integers(0, 1)), draw(st.sampled_from(DEVICES))
    )
    samples = [draw(st.lists(st.integers(-9, 9), min_size=1, max_size=3)) for _ in keys]
    partials = [fold.lift_column(values, [0] * len(values)) for values in samples]
    seqs = tuple(draw(st.integers(1, number)) for _ in keys)
    stream = made(fold).fold.stream
    columns = tuple(zip(*partials, strict=True))
    return VariableFrame(replica, number, "here", stream, shard, keys, seqs, columns)


def rank(frame):
    """Return what decides which of two entries of one device and shard stands."""
    return frame.version, frame.encode()


class Plain:
    """What `Published` means: the newest entry of each (device, shard), looked at each time."""

    def __init__(self, fold):
        self.fold, self.entries, self.membership = fold, {}, Membership()

    def put(self, frame):
        at = (frame.sender.device, frame.shard)
        self.entries[at] = frame

    def words(self, *, everybody=False):
        """Yield (key, device, version, partial) of what counts."""
        for (device, _), frame in self.entries.items():
            if everybody or device not in self.membership.retired:
                partials = list(zip(*frame.columns, strict=True))
                for key, seq, partial in zip(frame.keys, frame.seqs, partials, strict=True):
                    yield key, device, Version.of(frame.sender, seq), partial

    def check(self, published):
        words, text = list(self.words()), membership_text(self.membership)
        assert published.digest == variable_digest([entry_hash(*word) for word in words], text)
        assert published.keys == sorted({word[0] for word in words})
        there = {device for device, _ in self.entries} - self.membership.retired.keys()
        assert published.devices == sorted(there)
        for key in KEYS:
            mine = [word for word in words if word[0] == key]
            total = published.total(key)
            partials = [partial for *_, partial in sorted(mine, key=lambda word: word[1])]
            assert total.partial == reduce(self.fold.combine, partials, self.fold.zero)
            assert total.digest == variable_digest([entry_hash(*word) for word in mine], text)
            assert total.devices == len(mine)
        for device in DEVICES:
            own = [entry_hash(*w) for w in self.words(everybody=True) if w[1] == device]
            assert published.device_digest(device) == sum(own) % MODULUS


@pytest.mark.parametrize("fold", FOLDS, ids=repr)
def test_what_is_kept_up_to_date_is_what_is_made_anew(fold):
    words = st.tuples(st.sampled_from(DEVICES), st.booleans())

    @settings(max_examples=60)
    @given(st.lists(frames(fold) | words, max_size=25))
    def check(history):
        published, plain = made(fold), Plain(fold)
        for step in history:
            if isinstance(step, VariableFrame):
                at = (step.sender.device, step.shard)
                before = plain.entries.get(at)
                outcome = published.put(step)
                if before is None or step.version > before.version:
                    assert outcome == "news"
                if outcome == "news":
                    plain.put(step)
                    assert before is None or step.version >= before.version
            else:
                device, out = step
                known = plain.membership
                known |= known.retire(device, Version(1, 1, 1)) if out else known.admit(device)
                published.retire(known.retired, membership_text(known))
            plain.check(published)

    check()


@pytest.mark.parametrize("fold", FOLDS, ids=repr)
def test_any_order_of_entries_ends_alike(fold):
    @settings(max_examples=40)
    @given(st.lists(frames(fold), max_size=15), st.randoms())
    def check(history, shuffled):
        one, other, again = made(fold), made(fold), [*history, *history]
        shuffled.shuffle(again)
        for frame in history:
            one.put(frame)
        for frame in again:
            other.put(frame)
        assert one.digest == other.digest
        assert [one.total(key) for key in KEYS] == [other.total(key) for key in KEYS]

    check()


@pytest.mark.parametrize("fold", FOLDS, ids=repr)
def test_own_words_give_frames_that_say_the_same_elsewhere(fold):
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
            frame = here.frame(me, shard)
            assert all(0 < seq <= frame.number for seq in frame.seqs)
            assert there.put(frame) == "news"
        held = {key: partial for key, partial in held.items() if partial is not None}
        assert here.keys == there.keys == sorted(held)
        assert here.digest == there.digest
        assert {key: there.total(key).partial for key in held} == held

    check()


def test_two_entries_of_one_version_are_a_clones_and_one_of_them_stands():
    fold = folds.mean()
    shard, stream = key_shard("room-1"), made(fold).fold.stream
    several = [
        VariableFrame(ME, 3, "here", stream, shard, keys, seqs, columns)
        for keys, seqs, columns in [
            (("room-1",), (3,), ((1,), (5,))),
            (("room-1",), (3,), ((1,), (6,))),
            (("room-1",), (2,), ((1,), (5,))),
            ((), (), ()),
        ]
    ]
    digests = set()
    for first in range(4):
        published = made(fold)
        for frame in (*several[first:], *several[:first]):
            published.put(frame)
        digests.add(published.digest)
    assert len(digests) == 1
