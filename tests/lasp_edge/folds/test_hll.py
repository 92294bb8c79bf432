"""HyperLogLog: canonical images, which the Apache DataSketches library makes and reads too."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from hashlib import sha256
from itertools import product
from random import Random
from struct import unpack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lasp_edge.folds import hll
from lasp_edge.folds.packed import MAX_BINARY_BYTES

ANY = range(-(2**31) + 1, 2**31)
SIZES = [1, 2, 7, 8, 23, 24, 25, 48, 96, 97, 384, 385, 1_000, 4_000, 20_000]


def drawn(size, seed=0):
    return Random(f"{seed}/{size}").sample(ANY, size)


def slow_image(values, lg_k):
    """Return the registers by their definition, coupon by coupon."""
    registers = [0] * 2**lg_k
    for each in map(hll.coupon, values):
        index = (each & (2**26 - 1)) % 2**lg_k
        registers[index] = max(registers[index], each >> 26)
    return bytes(registers)


@pytest.mark.parametrize(
    ("values", "image"),
    [
        ([0], "0201070c03080108" + "cbd7c204"),
        ([1, -1, 1], "0201070c03080208" + "2bf2fb06" + "d964e70b"),
        (
            [2150, 2151, -(2**31) + 1, 2**31 - 1],
            "0201070c03080408" + "8a66f605" + "3f53b008" + "d5240d09" + "d026420a",
        ),
    ],
)
def test_images_of_few_values_are_these_bytes(values, image):
    assert hll.image_of(values, 12).hex() == image


@pytest.mark.parametrize(
    ("size", "digest", "estimate"),
    [
        (8, "dc9d9c7b10c8878c", 8),
        (384, "66c4f9ceecd9c08d", 384),
        (385, "d2cfedec081f44f5", 382),
        (5_000, "3177282e8e9a624f", 4_972),
    ],
)
def test_images_and_estimates_stay_what_they_are_on_every_machine(size, digest, estimate):
    image = hll.image_of(range(size), 12)
    assert sha256(image).hexdigest()[:16] == digest
    assert hll.estimate(image) == estimate


@pytest.mark.parametrize(("size", "lg_k"), [*product(SIZES, [8, 10, 12, 14]), (100_000, 14)])
def test_an_image_is_what_the_library_makes_of_the_same_values(size, lg_k):
    datasketches = pytest.importorskip("datasketches", reason="compares with datasketches 5.2.0")
    values = drawn(size)
    image = hll.image_of(values, lg_k)
    theirs = datasketches.hll_sketch(lg_k, datasketches.tgt_hll_type.HLL_8)
    for value in values:
        theirs.update(value)
    their_image = theirs.serialize_compact()
    if image[7] == 10:
        # Theirs counts by history (flag and HIP differ), ours by registers alone.
        assert image[:5] == their_image[:5]
        assert image[16:] == their_image[16:]
    else:
        assert image[:8] == their_image[:8]
        start = 8 if image[7] == 8 else 12
        assert image[8:start] == their_image[8:start]
        assert coupons(image[start:]) == sorted(coupons(their_image[start:]))
    read = datasketches.hll_sketch.deserialize(image)
    assert hll.estimate(image) == pytest.approx(read.get_estimate(), rel=0.6 / 2 ** (lg_k / 2))


def coupons(body):
    return [int.from_bytes(body[at : at + 4], "little") for at in range(0, len(body), 4)]


@pytest.mark.parametrize("lg_k", [8, 12])
@pytest.mark.parametrize("sizes", [(3, 4), (5, 30), (300, 200), (5, 5_000), (4_000, 6_000)])
def test_the_library_unites_our_images_into_the_registers_that_we_do(lg_k, sizes):
    datasketches = pytest.importorskip("datasketches", reason="compares with datasketches 5.2.0")
    images = [hll.image_of(drawn(size, seed), lg_k) for seed, size in enumerate(sizes)]
    union = datasketches.hll_union(lg_k)
    for image in images:
        union.update(datasketches.hll_sketch.deserialize(image))
    theirs = union.get_result(datasketches.tgt_hll_type.HLL_8)
    ours = hll.joined(*images, lg_k)
    their_image = theirs.serialize_compact()
    if ours[7] == 10:
        assert ours[16:] == their_image[16:]  # before that, theirs may tell of history
    else:
        assert sorted(coupons(their_image[12 if ours[7] == 9 else 8 :])) == list(
            coupons(ours[12 if ours[7] == 9 else 8 :])
        )
    read = datasketches.hll_sketch.deserialize(ours)
    assert hll.estimate(ours) == pytest.approx(read.get_estimate(), rel=0.6 / 2 ** (lg_k / 2))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SIZES[:13]), st.integers(1, 6), st.sampled_from([8, 9, 12]), st.randoms())
def test_an_image_depends_on_the_set_of_values_alone(size, pieces, lg_k, random):
    values = drawn(size)
    whole = hll.image_of(values, lg_k)
    shared = random.sample(values, size // 2)
    parts = [hll.image_of([*values[n::pieces], *shared], lg_k) for n in range(pieces)]
    random.shuffle(parts)
    while len(parts) > 1:
        a = parts.pop(random.randrange(len(parts)))
        b = parts.pop(random.randrange(len(parts)))
        assert hll.joined(a, b, lg_k) == hll.joined(b, a, lg_k)
        parts.append(hll.joined(a, b, lg_k))
    assert parts == [whole]
    assert hll.is_canonical(whole, lg_k)


@pytest.mark.parametrize("size", [100, 385, 30_000])
def test_one_at_a_time_makes_the_same_image(size):
    values = drawn(min(size, 600))
    one_by_one = reduce(lambda a, b: hll.joined(a, b, 8), (hll.image_of([v], 8) for v in values))
    assert one_by_one == hll.image_of(values, 8)


@pytest.mark.parametrize("lg_k", [8, 12, 14])
def test_registers_are_those_of_the_definition_and_the_sums_are_exact(lg_k):
    values = drawn(30_000)
    image = hll.image_of(values, lg_k)
    registers = slow_image(values, lg_k)
    assert image[40:] == registers
    assert len(image) == 40 + 2**lg_k <= MAX_BINARY_BYTES
    assert hll.estimate(image) == estimate_by_decimals(registers)


def test_coupons_become_registers_at_a_number_of_coupons_alone():
    for lg_k, most in ((8, 24), (9, 48), (12, 384), (14, 1_536)):
        assert hll.most_coupons(lg_k) == most
        values = drawn(most + 1)
        assert len(hll.image_of(values[:most], lg_k)) == 12 + 4 * most
        assert len(hll.image_of(values, lg_k)) == 40 + 2**lg_k


def estimate_by_decimals(registers):
    """Return Ertl's estimate to 60 digits, rounded: the sums are cut where nothing is left."""
    size, q = len(registers), 62
    counts = [registers.count(run) for run in range(q + 2)]
    with localcontext() as context:
        context.prec = 60
        x = Decimal(counts[0]) / size
        sigma = x + sum(x ** (2**k) * 2 ** (k - 1) for k in range(1, 40)) if x else Decimal(0)
        x = 1 - Decimal(counts[q + 1]) / size
        tau = Decimal(0)
        if 0 < x < 1:
            tau = 1 - x
            for k in range(1, 100):
                x = x.sqrt()
                tau -= (1 - x) ** 2 / Decimal(2**k)
            tau /= 3
        middle = sum(counts[run] / Decimal(2**run) for run in range(1, q + 1))
        total = size * sigma + middle + size * tau / Decimal(2**q)
        return round(size * size / (2 * Decimal(2).ln()) / total)


def test_the_sums_in_an_image_are_exact_for_every_run():
    for registers in (bytes(range(64)) * 4, bytes([63] * 255 + [32]), bytes([31] * 256)):
        image = hll.of_registers(registers, 8)
        low, high = (
            sum(Fraction(1, 2**run) for run in registers if (run >= 32) is large)
            for large in (False, True)
        )
        assert unpack("<dddII", image[8:40]) == (0.0, low, high, registers.count(0), 0)
        assert hll.is_canonical(image, 8)


def test_registers_of_the_longest_runs_are_estimated_by_the_formula_too():
    for registers in (
        bytes([63] * 128 + [1] * 128),
        bytes([63] * 255 + [5]),
        bytes([63] * 200 + [62] * 56),
        bytes([40] * 200 + [33] * 56),
        bytes([0] * 255 + [63]),
    ):
        image = hll.of_registers(registers, 8)
        estimate = hll.estimate(image)
        assert estimate == pytest.approx(float(estimate_by_decimals(registers)), rel=1e-14)


@pytest.mark.parametrize("size", [250, 1_250, 3_000])
def test_the_error_is_the_stated_one(size):
    off = [hll.estimate(hll.image_of(drawn(size, seed), 10)) / size - 1 for seed in range(40)]
    stated = 1.04 / math.sqrt(2**10)
    assert math.sqrt(sum(each**2 for each in off) / len(off)) < 1.3 * stated
    assert max(map(abs, off)) < 4 * stated


LIST, SET, REGISTERS = (hll.image_of(drawn(size), 12) for size in (5, 50, 500))


def changed(image, at, byte):
    return image[:at] + bytes([byte]) + image[at + 1 :]


@pytest.mark.parametrize("image", [LIST, SET, REGISTERS], ids=["list", "set", "registers"])
def test_an_image_with_any_byte_of_its_head_changed_is_told(image):
    assert hll.is_canonical(image, 12)
    assert not hll.is_canonical(image, 11)
    head = {8: 8, 9: 12, 10: 40}[image[7]]
    for at in range(head):
        assert not hll.is_canonical(changed(image, at, image[at] ^ 1), 12), at
    assert not hll.is_canonical(image[:-1], 12)
    assert not hll.is_canonical(image + b"\0", 12)
    assert not hll.is_canonical(bytearray(image), 12)


@pytest.mark.parametrize(
    "part",
    [
        None,
        7,
        "x",
        b"\0",
        LIST[:8],
        LIST[:8] + LIST[12:16] + LIST[8:12] + LIST[16:],  # not ascending
        LIST[:8] + LIST[8:12] * 2 + LIST[16:],  # twice the same
        LIST[:8] + bytes(4) + LIST[12:],  # no coupon
        LIST[:-1] + b"\0",  # a run of 0
        b"\3\1\7\x0c\5\x08\0\x09" + b"\7\0\0\0" + SET[12:40],  # 7 coupons are a list
        REGISTERS[:40] + bytes(2**12),
        changed(REGISTERS, 50, 64),
        changed(REGISTERS, 50, REGISTERS[50] + 1),  # the sums do not fit
        hll.of_registers(bytes(2**12), 12),  # no value at all
    ],
    ids=range(14),
)
def test_what_is_no_canonical_image_is_told(part):
    assert not hll.is_canonical(part, 12)


def test_too_many_coupons_are_no_canonical_image():
    body = sorted(map(hll.coupon, drawn(385)))
    head = bytes([3, 1, 7, 12, 10, 8, 0, 9]) + (385).to_bytes(4, "little")
    image = head + b"".join(each.to_bytes(4, "little") for each in body)
    assert not hll.is_canonical(image, 12)
    most = bytes([3, 1, 7, 12, 9, 8, 0, 9]) + (384).to_bytes(4, "little") + image[12:-4]
    assert hll.is_canonical(most, 12)
