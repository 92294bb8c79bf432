"""One encoder packs every value, whatever the one before it was."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crdts import plain
from crdts.plain import pack

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary()
PLAIN = st.recursive(
    SCALARS | st.floats(allow_nan=False),
    lambda each: st.lists(each) | st.lists(each).map(tuple) | st.dictionaries(st.text(), each),
)


@given(st.lists(PLAIN))
def test_values_packed_one_after_another_have_the_bytes_of_each_alone(values):
    assert [pack(value) for value in values] == [msgpack.packb(value) for value in values]


@pytest.mark.parametrize("wrong", [("kitchen", {1, 2}), ["kitchen", 2**64], ("kitchen", "\ud800")])
def test_what_cannot_be_packed_leaves_nothing_for_the_next_value(wrong):
    with pytest.raises((TypeError, OverflowError, ValueError)):
        pack(wrong)
    assert pack(("cellar", 1)) == msgpack.packb(("cellar", 1))


def test_an_encoder_is_used_by_one_at_a_time(monkeypatch):
    used, inner = [], []

    class Interrupted(msgpack.Packer):
        def pack(self, value):
            used.append(self)
            if value == "outer":
                inner.append(pack("inner"))  # as another thread would
            return super().pack(value)

    monkeypatch.setattr(plain, "_free", [])
    monkeypatch.setattr(plain.msgpack, "Packer", Interrupted)
    assert [pack("outer"), *inner] == [b"\xa5outer", b"\xa5inner"]
    assert used[0] is not used[1]
    pack("again")
    assert used[2] in used[:2]
