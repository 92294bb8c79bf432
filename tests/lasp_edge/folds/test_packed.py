"""Byte forms of counts and of greatest values: canonical, and what dictionaries and lists say."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.folds.packed import (
    MAX_BINARY_BYTES,
    counts_added,
    counts_of,
    counts_taken,
    is_packed_counts,
    is_packed_top,
    packed_counts,
    packed_top,
    top_joined,
    top_of,
)

buckets = st.integers(-3, 3) | st.integers(-(2**15), 2**15 - 1)
counts = st.dictionaries(buckets, st.integers(1, 5) | st.integers(1, 2**45), max_size=8)
tops = st.lists(st.integers(-3, 3) | st.integers(-(2**31) + 1, 2**31 - 1), max_size=9)


@given(counts)
def test_counts_come_back_from_their_bytes_and_equal_ones_have_equal_bytes(content):
    packed = packed_counts(content)
    assert counts_of(packed) == content
    assert list(counts_of(packed)) == sorted(content)
    backwards = dict(reversed(content.items()))
    assert packed_counts(backwards) == packed == packed_counts({**content, 77: 0} | content)
    assert len(packed) == 8 * len(content)
    assert is_packed_counts(packed)


def test_an_entry_is_bucket_and_count_big_endian():
    assert packed_counts({}) == b""
    assert packed_counts({-(2**15): 1, 2**15 - 1: 2**47 - 1}).hex() == (
        "0000000000000001" + "ffff7fffffffffff"
    )


@given(counts, counts)
def test_counts_add_up_and_are_taken_away_bucket_by_bucket(a, b):
    both = counts_added(packed_counts(a), packed_counts(b))
    assert both == packed_counts(Counter(a) + Counter(b))
    assert counts_taken(both, packed_counts(b)) == packed_counts(a)
    assert counts_taken(both, both) == b""


def test_more_than_there_is_cannot_be_taken_away():
    for b in ({1: 3}, {2: 1}, {0: 1}):
        with pytest.raises(ValueError, match="holds less than is to be taken"):
            counts_taken(packed_counts({1: 2}), packed_counts(b))


def test_a_count_that_would_not_fit_is_refused_and_not_carried_into_the_bucket():
    most = packed_counts({5: 2**47 - 1})
    with pytest.raises(ValueError, match="count of bucket 5 reaches"):
        counts_added(most, packed_counts({5: 1}))
    for wrong in ({2**15: 1}, {-(2**15) - 1: 1}, {0: 2**47}, {0: -1}):
        with pytest.raises(ValueError, match="out of range"):
            packed_counts(wrong)


ENTRY = packed_counts({1: 1})


@pytest.mark.parametrize(
    "part",
    [
        None,
        0,
        "",
        bytearray(ENTRY),
        ENTRY[:-1],
        ENTRY + ENTRY,  # not ascending
        packed_counts({2: 1}) + ENTRY,
        bytes(8),  # a bucket without a count
        b"\0\0\x80\0\0\0\0\0",  # 2**47
        b"".join(packed_counts({n: 1}) for n in range(MAX_BINARY_BYTES // 8 + 1)),
    ],
    ids=range(10),
)
def test_what_is_not_canonical_counts_is_told(part):
    assert not is_packed_counts(part)


def test_counts_may_have_a_lower_limit():
    assert is_packed_counts(packed_counts({1: 9, 2: 3}), 10)
    assert not is_packed_counts(packed_counts({1: 9, 2: 10}), 10)
    assert is_packed_counts(b"")
    longest = packed_counts(dict.fromkeys(range(MAX_BINARY_BYTES // 8), 1))
    assert is_packed_counts(longest)


@given(tops)
def test_greatest_values_come_back_in_order(content):
    packed = packed_top(content)
    assert top_of(packed) == tuple(sorted(content, reverse=True))
    assert packed == packed_top(reversed(content))
    assert is_packed_top(packed, max(1, len(content)))


@given(tops, tops, st.integers(1, 4))
def test_the_greatest_of_both_are_kept_with_repeats(a, b, size):
    kept = [packed_top(sorted(x, reverse=True)[:size]) for x in (a, b)]
    joined = top_joined(*kept, size)
    assert top_of(joined) == tuple(sorted(a + b, reverse=True)[:size])
    assert is_packed_top(joined, size)


@pytest.mark.parametrize(
    "part",
    [None, 3, bytearray(4), bytes(3), bytes(4), packed_top([1]) + packed_top([2]), bytes(12)],
    ids=range(7),
)
def test_what_is_no_canonical_top_is_told(part):
    assert not is_packed_top(part, 2)
    assert is_packed_top(packed_top([2, 2]), 2)
    assert not is_packed_top(packed_top([2, 2]), 1)


def test_values_that_are_no_readings_are_refused():
    for wrong in (2**31, -(2**31)):
        with pytest.raises(ValueError, match="out of range"):
            packed_top([0, wrong])
