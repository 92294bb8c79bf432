"""The `inputs` digest and stream ids, against an independent computation of their definition."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from crdts import Version
from lasp_edge.protocol.inputs import MODULUS, entry_hash, inputs_digest, text_hash, variable_digest
from lasp_edge.protocol.streams import stream_id

texts = st.text(st.characters(codec="utf-8"), max_size=12)
parts = st.lists(st.none() | st.integers(-(2**62), 2**62) | st.binary(max_size=9), max_size=4)
versions = st.builds(
    Version, st.integers(0, 2**30 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**40 - 1)
)


def first_eight(text):
    """Return what Spark's conv(substring(sha2(text, 256), 1, 16), 16, 10) gives."""
    return int(hashlib.new("sha256", text.encode("utf-8")).hexdigest()[:16], 16)


@given(texts, texts, versions, parts)
def test_entry_hash_is_that_of_its_fields_joined(key, device, version, partial):
    incarnation, nonce, seq = version
    numbers = ["" if p is None else p.hex() if type(p) is bytes else f"{p:d}" for p in partial]
    text = "\x1f".join([key, device, f"{incarnation}", f"{nonce}", f"{seq}", *numbers])
    assert entry_hash(key, device, version, partial) == first_eight(text)


@given(st.lists(st.integers(0, 2**64 - 1), max_size=6), st.integers(-(2**63), 2**63 - 1))
def test_inputs_is_the_sum_of_entries_membership_and_stream(hashes, stream):
    total = sum(hashes) + first_eight("") + first_eight(str(stream))
    inputs = inputs_digest(variable_digest(hashes), stream)
    assert inputs == f"{total % 2**64:016x}"
    assert inputs == inputs_digest(variable_digest(reversed(hashes)), stream)


def test_digest_can_be_kept_up_to_date_entry_by_entry():
    before, after = (entry_hash("", "pi-1", Version(1, 7, seq), (seq, 9)) for seq in (1, 2))
    other = entry_hash("", "pi-2", Version(1, 8, 1), (4, None))
    kept = variable_digest([before, other]) + after - before
    assert kept % MODULUS == variable_digest([after, other])


def test_membership_changes_the_digest():
    assert variable_digest([5]) == (5 + text_hash("")) % MODULUS
    assert variable_digest([5], "pi-1 retired") != variable_digest([5])


def test_known_digest_stays_what_it_was():
    entry = entry_hash("", "pi-1", Version(1, 7, 3), (2, 4400))
    assert inputs_digest(variable_digest([entry]), -5) == "c22c30e2b37fcef1"


@given(st.lists(texts, min_size=1, max_size=5))
def test_stream_id_is_a_signed_hash_of_its_meaning(meaning):
    unsigned = first_eight("\x1f".join(meaning))
    assert stream_id(*meaning) == unsigned - (2**64 if unsigned >= 2**63 else 0)


def test_stream_id_keeps_its_parts_apart():
    assert stream_id("ab", "c") != stream_id("a", "bc")
    assert stream_id("a", 1) == stream_id("a", "1")
