"""How many different values: HyperLogLog, in the Apache DataSketches image (HLL_8), canonical.

A value is hashed to a **coupon**: 26 bits of address and, above them, the length of a run of zero
bits plus one. Few coupons are kept as they are. More become 2**lg_k registers, each the greatest
run of the coupons whose address ends in its index. Both forms are joined by union, so samples may
repeat and come in any order.

An image here is a pure function of the set of values: coupons ascend, registers carry no history
(out-of-order flag set, HIP accumulator 0), and the step from coupons to registers is at a count of
coupons alone. Little-endian, as the library writes it, "compact":

| bytes | list: under 8 coupons | set | registers |
|---|---|---|---|
| 0-2 | 2, 1, 7 | 3, 1, 7 | 10, 1, 7 |
| 3 | lg_k | lg_k | lg_k |
| 4 | 3 | log of the least table, from 5 on, that they fill to 3/4 | 0 |
| 5: flags | 8 | 8 | 16 |
| 6 | number of coupons | 0 | 0 |
| 7 | 8 | 9 | 10 |
| 8- | coupons, 4 each | count (4), coupons | 0.0, kxq0, kxq1 (8 each), zeros (4), 0 (4) |
| 40- | | | one byte a register |

`kxq0` is the sum of 2**-register over registers below 32, `kxq1` over the others; both are exact;
`zeros` is the number of registers that are 0. No sample at all is b"". Spark's functions for HLL
sketches and the package `datasketches` read these images. `estimate` counts coupons, and for
registers uses Ertl's estimator, which needs no tables; the library's own estimate of the same image
differs from it by less than its error, 1.04 / sqrt(2**lg_k).

    >>> image = image_of([20, 21, 20], lg_k=12)
    >>> image == joined(image_of([21], 12), image_of([20], 12), 12), len(image), estimate(image)
    (True, 16, 2)

Source: Flajolet, Fusy, Gandouet and Meunier, "HyperLogLog", AofA 2007; O. Ertl, "New cardinality
estimation algorithms for HyperLogLog sketches", 2017 (section 2); format: Apache DataSketches.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import sqrt
from struct import Struct, pack, unpack
from typing import Any

LEAST_LG_K, GREATEST_LG_K = 8, 14
"""With fewer registers the estimate is biased; more do not fit a binary part of a partial."""

_SEED = 9001
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_MIX1, _MIX2 = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_64_BITS: int = 2**64 - 1

_ADDRESS_BITS = 26
_ADDRESS: int = 2**_ADDRESS_BITS - 1
_LONGEST_RUN = 63
_HALF_RUNS = 32

_VERSION_AND_FAMILY = bytes([1, 7])
_COMPACT, _OUT_OF_ORDER = 8, 16
_LIST, _SET, _REGISTERS = 8, 9, 10  # of the target type HLL_8
_LIST_COUPONS = 8
_LEAST_SET_LG = 5
_AFTER_HEAD = Struct("<dddII")
_HEAD_BYTES = 40
_INFINITE_ALPHA = 0.7213475204444817  # 1 / (2 ln 2)


def most_coupons(lg_k: int) -> int:
    """Return how many coupons are kept as such; one more and they become registers."""
    return 3 * (1 << lg_k - 3) // 4


@lru_cache(maxsize=4096)  # sensors repeat themselves
def coupon(value: int) -> int:
    """Return the coupon of a signed 64-bit integer: MurmurHash3 (128 bits, x64) of its 8 bytes."""
    word = value * _C1 & _64_BITS
    word = (word << 31 | word >> 33) * _C2 & _64_BITS
    low, high = _SEED ^ word ^ 8, _SEED ^ 8
    low = low + high & _64_BITS
    high = high + low & _64_BITS
    low, high = _mixed(low), _mixed(high)
    low = low + high & _64_BITS
    high = high + low & _64_BITS
    zeros = min(64 - high.bit_length(), _LONGEST_RUN - 1)
    return (zeros + 1) << _ADDRESS_BITS | low & _ADDRESS


def _mixed(word: int) -> int:
    word = (word ^ word >> 33) * _MIX1 & _64_BITS
    word = (word ^ word >> 33) * _MIX2 & _64_BITS
    return word ^ word >> 33


def image_of(values: Iterable[int], lg_k: int) -> bytes:
    """Return the image of a set of quantised values; repeats do not matter."""
    return _of_coupons(set(map(coupon, set(values))), lg_k)


def joined(a: bytes, b: bytes, lg_k: int) -> bytes:
    """Return the image of the values of both."""
    if not a or not b or a == b:
        return a or b
    if a[7] != _REGISTERS and b[7] != _REGISTERS:
        return _of_coupons({*_coupons(a), *_coupons(b)}, lg_k)
    return of_registers(_greatest(_registers(a, lg_k), _registers(b, lg_k)), lg_k)


def estimate(image: bytes) -> int:
    """Return about how many different values an image was made of."""
    if not image:
        return 0
    if image[7] != _REGISTERS:
        return len(_coupons(image))
    return round(_estimate(image[_HEAD_BYTES:]))


def is_canonical(part: Any, lg_k: int) -> bool:
    """Return whether `part`, which may be anything, is an image as `image_of` could give it."""
    if type(part) is not bytes:
        return False
    if not part:
        return True
    if len(part) == _HEAD_BYTES + 2**lg_k and part[7] == _REGISTERS:
        registers = part[_HEAD_BYTES:]
        counts = _counts_of_runs(registers)
        in_range = sum(counts) == len(registers) > counts[0]
        return in_range and part[:_HEAD_BYTES] == _head_of_registers(counts, lg_k)
    if len(part) % 4 or not 12 <= len(part) <= 12 + 4 * most_coupons(lg_k):  # noqa: PLR2004
        return False
    coupons = _coupons(part)
    in_range = all(2**_ADDRESS_BITS <= each < 2**32 for each in coupons)
    return bool(coupons) and in_range and part == _of_coupons(set(coupons), lg_k)


def _of_coupons(coupons: set[int], lg_k: int) -> bytes:
    """Return the image of a set of coupons, of whichever form their number asks for."""
    count = len(coupons)
    if not count:
        return b""
    if count > most_coupons(lg_k):
        return of_registers(_raised(coupons, lg_k), lg_k)
    body = pack(f"<{count}I", *sorted(coupons))
    if count < _LIST_COUPONS:
        return _head(2, lg_k, 3, _COMPACT, count, _LIST) + body
    return _head(3, lg_k, _lg_table(count), _COMPACT, 0, _SET) + pack("<I", count) + body


def _lg_table(count: int) -> int:
    """Return the logarithm of the least table that `count` coupons fill to at most 3/4."""
    lg_table = _LEAST_SET_LG
    while 4 * count > 3 * 2**lg_table:
        lg_table += 1
    return lg_table


def _head(ints: int, lg_k: int, lg_table: int, flags: int, count: int, mode: int) -> bytes:
    return bytes([ints, *_VERSION_AND_FAMILY, lg_k, lg_table, flags, count, mode])


def _coupons(image: bytes) -> tuple[int, ...]:
    body = image[8:] if image[7] == _LIST else image[12:]
    return unpack(f"<{len(body) // 4}I", body)


def _raised(coupons: Iterable[int], lg_k: int) -> bytes:
    """Return the registers of coupons."""
    registers, last = bytearray(2**lg_k), 2**lg_k - 1
    for each in coupons:
        index, run = each & last, each >> _ADDRESS_BITS
        if run > registers[index]:  # noqa: PLR1730 - this is the inner loop
            registers[index] = run
    return bytes(registers)


def _registers(image: bytes, lg_k: int) -> bytes:
    return image[_HEAD_BYTES:] if image[7] == _REGISTERS else _raised(_coupons(image), lg_k)


def _greatest(a: bytes, b: bytes) -> bytes:
    """Return the greater of each two registers, by arithmetic on all of them at once.

    Registers are below 128: with bit 7 set in each of `a`, subtracting `b` borrows from no
    neighbour and leaves bit 7 where `a` is not the lesser.
    """
    size = len(a)
    x, y = int.from_bytes(a, "big"), int.from_bytes(b, "big")
    tops = int.from_bytes(b"\x80" * size, "big")
    not_less = (((x | tops) - y) & tops) >> 7
    return (y ^ ((x ^ y) & not_less * 0xFF)).to_bytes(size, "big")


def of_registers(registers: bytes, lg_k: int) -> bytes:
    """Return the image of registers, one byte each."""
    return _head_of_registers(_counts_of_runs(registers), lg_k) + registers


def _head_of_registers(counts: list[int], lg_k: int) -> bytes:
    kxq0 = sum(count << _HALF_RUNS - run for run, count in enumerate(counts[:_HALF_RUNS]))
    kxq1 = sum(count << 64 - run for run, count in enumerate(counts) if run >= _HALF_RUNS)
    sums = _AFTER_HEAD.pack(0.0, kxq0 / 2**_HALF_RUNS, kxq1 / 2**64, counts[0], 0)
    return _head(10, lg_k, 0, _OUT_OF_ORDER, 0, _REGISTERS) + sums


def _counts_of_runs(registers: bytes) -> list[int]:
    """Return how many registers hold 0, 1 and so on to the longest run."""
    counts, left = [0] * (_LONGEST_RUN + 1), len(registers)
    for run in range(_LONGEST_RUN + 1):
        counts[run] = registers.count(run)
        left -= counts[run]
        if not left:
            break
    return counts


def _estimate(registers: bytes) -> float:
    """Return Ertl's estimate. Only +, *, / and sqrt: every machine gets the same double."""
    size, counts = len(registers), _counts_of_runs(registers)
    total = size * _tau(1.0 - counts[_LONGEST_RUN] / size)
    for count in reversed(counts[1:_LONGEST_RUN]):
        total = 0.5 * (total + count)
    total += size * _sigma(counts[0] / size)
    return _INFINITE_ALPHA * size * size / total


def _sigma(x: float) -> float:
    """Return x + sum over k >= 1 of x**(2**k) * 2**(k - 1), for 0 <= x < 1."""
    weight, total, before = 1.0, x, -1.0
    while total != before:
        x *= x
        before = total
        total += x * weight
        weight += weight
    return total


def _tau(x: float) -> float:
    """Return (1 - x - sum over k >= 1 of (1 - x**(2**-k))**2 * 2**-k) / 3, for 0 <= x <= 1."""
    if x in {0.0, 1.0}:
        return 0.0
    weight, total, before = 1.0, 1.0 - x, -1.0
    while total != before:
        x = sqrt(x)
        before = total
        weight *= 0.5
        total -= (1.0 - x) ** 2 * weight
    return total / 3.0
