"""The wire format: states as bytes, and bytes from anyone as states or a reason why not.

A state is one msgpack extension value: its code is the type's place in `TYPES`, its body the type's
plain form. A state inside a state is the same again, so any composition has a wire form. An
encoding is **canonical**: equal states have equal bytes, whatever order they were joined in, so
bytes can be compared and hashed in place of states. What is not canonical is refused.

Whoever sent the bytes may be broken or hostile, so length and nesting are bounded and every part is
checked by the type it is for. Only `ValueError` ever leaves `decode`.

>>> from crdts import GCounter, Replica
>>> counter = GCounter().increment(Replica(1, 7, "kitchen"), 3)
>>> encode(counter).hex(" ")
'c7 0d 00 81 a7 6b 69 74 63 68 65 6e 93 01 07 03'
>>> decode(encode(counter)) == counter
True
>>> decode(b"5")
Traceback (most recent call last):
    ...
ValueError: a state needs one msgpack extension value, got 1 bytes of something else

Source: msgpack specification, https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from functools import partial
from typing import Any

import msgpack

from crdts.bounded_lww_set import BoundedLWWSet
from crdts.control_log import ControlLog
from crdts.counters import GCounter, PNCounter
from crdts.derived_set import DerivedSet
from crdts.extrema import Max, Min
from crdts.flags import DWFlag, EWFlag
from crdts.frontier import Frontier
from crdts.gset import GSet
from crdts.ivar import IVar
from crdts.lattice import Lattice
from crdts.lwwregister import LWWRegister
from crdts.membership import Membership
from crdts.mvregister import MVRegister
from crdts.ormap import ORMap
from crdts.orset import ORSet
from crdts.owned_map import OwnedMap
from crdts.plain import pack
from crdts.product import Pair, Product
from crdts.twopset import TwoPSet

# A type's place is its code on the wire: append, never reorder.
TYPES: tuple[type[Lattice], ...] = (
    GCounter,
    PNCounter,
    Pair,
    Product,
    OwnedMap,
    Frontier,
    BoundedLWWSet,
    Max,
    Min,
    LWWRegister,
    IVar,
    GSet,
    TwoPSet,
    ORSet,
    MVRegister,
    EWFlag,
    DWFlag,
    ORMap,
    Membership,
    DerivedSet,
    ControlLog,
)
CODES = {kind: code for code, kind in enumerate(TYPES)}
MAX_BYTES = 1 << 20
MAX_DEPTH = 8  # of states in states
MALFORMED = (msgpack.ExtraData, msgpack.FormatError, msgpack.StackError, TypeError, OverflowError)


def encode(state: Lattice) -> bytes:
    """Return the canonical bytes of `state`.

    >>> from crdts import GSet
    >>> encode(GSet({"b", "a"})) == encode(GSet({"a", "b"}))
    True
    >>> len(encode(GSet({"a", "b"}))), len(encode(GSet()))
    (8, 3)
    """
    return pack(_extension(state))


def decode(data: bytes, *, max_bytes: int = MAX_BYTES) -> Lattice:
    """Return the state that `encode` gave.

    >>> from crdts import GCounter, Replica, encode
    >>> counter = GCounter().increment(Replica(1, 7, "kitchen"), 3)
    >>> decode(encode(counter)) == counter
    True
    >>> decode(b"5")
    Traceback (most recent call last):
        ...
    ValueError: a state needs one msgpack extension value, got 1 bytes of something else

    Raises:
        ValueError: `data` is longer than `max_bytes`, or not the canonical bytes of a state.
    """
    if len(data) > max_bytes:
        raise ValueError(f"a state needs at most {max_bytes} bytes, got {len(data)}")
    try:
        state = _unpack(data, MAX_DEPTH)
    except MALFORMED as error:
        raise ValueError(f"a state needs well-formed msgpack, got {error!r}") from error
    if type(state) not in CODES:
        given = f"{len(data)} bytes of something else"
        raise ValueError(f"a state needs one msgpack extension value, got {given}")
    assert isinstance(state, Lattice)
    if encode(state) != data:
        raise ValueError("a state needs its canonical encoding, got another one of equal meaning")
    return state


def _extension(state: Any) -> msgpack.ExtType:
    code = CODES.get(type(state))
    if code is None:
        raise TypeError(f"only states and plain data have a wire form, not {type(state).__name__}")
    return msgpack.ExtType(code, _packed(state.to_plain()))


_free: list[msgpack.Packer] = []
"""Encoders that nobody uses now, as many as states ever stood inside each other; see `pack`."""


def _packed(plain: Any) -> bytes:
    """Return the bytes of plain data in which states stand."""
    try:
        encoder = _free.pop()
    except IndexError:
        encoder = msgpack.Packer(default=_extension)
    packed: bytes = encoder.pack(plain)
    _free.append(encoder)  # not after what cannot be encoded: its buffer holds a part of that
    return packed


def _unpack(data: bytes, depth: int) -> Any:
    return msgpack.unpackb(data, use_list=False, ext_hook=partial(_state, depth=depth))


def _state(code: int, body: bytes, *, depth: int) -> Lattice:
    if code not in range(len(TYPES)):
        raise ValueError(f"a state needs a type code below {len(TYPES)}, got {code}")
    if depth == 0:
        raise ValueError(f"a state needs at most {MAX_DEPTH} states inside each other, got more")
    return TYPES[code].from_plain(_unpack(body, depth - 1))
