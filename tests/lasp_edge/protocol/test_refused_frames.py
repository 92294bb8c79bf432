"""What a stranger sends is refused, and does no more: bytes, envelopes and deep nesting."""

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import FORMAT
from lasp_edge.protocol.frames import (
    AskFrame,
    BeatFrame,
    PaneFrame,
    PresenceFrame,
    VariableFrame,
)
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES
from tests.lasp_edge.protocol.support_packed import envelope, nested
from tests.lasp_edge.protocol.support_strategies import ME, any_frame


def test_a_frame_that_is_too_large_is_refused_before_it_is_read():
    with pytest.raises(FrameError, match="too large"):
        decode(b"\xc1" * (MAX_MESSAGE_BYTES + 1))


def refused_or_decoded(payload):
    """Decode; whatever comes out must encode again, and nothing but FrameError may come."""
    try:
        frame = decode(payload)
    except FrameError as error:
        assert 0 < len(str(error)) < 200  # noqa: PT017 - the reason is counted, so it stays short
        return None
    assert decode(frame.encode()) == frame
    return frame


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(max_size=3) | st.binary(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=300))
@example(b"")
@example(b"\xc1")
@example(b"\xd6\xff\x00\x00\x00\x00")  # a timestamp
@example(b"\xc7\x0c\xff" + b"\xff" * 12)  # a timestamp that is none
@example(b"\xc7\x00\x05")  # an extension
@example(b"\xdd\xff\xff\xff\xff")  # an array of four billion
@example(b"\xdf\xff\xff\xff\xff")
@example(b"\x91" * 60_000)
@example(b"\x81\xa1a" * 20_000)
@example(b"\x91" * 600 + b"\xc0")
@example(b"\xa2\xff\xff")  # no UTF-8
def test_random_bytes_are_refused(payload):
    refused_or_decoded(payload)


@given(any_frame, st.data())
def test_truncated_frames_are_refused(frame, data):
    payload = frame.encode()
    cut = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(FrameError):
        decode(payload[:cut])
    with pytest.raises(FrameError):
        decode(payload + b"\xc0")


@given(any_frame, st.data())
def test_mutated_frames_are_refused_or_are_frames(frame, data):
    payload = bytearray(frame.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    refused_or_decoded(bytes(payload))


@given(st.integers(0, 9), anything)
def test_any_body_is_refused_or_a_frame(kind, body):
    refused_or_decoded(envelope(kind, body))


@given(any_frame, st.data())
def test_frames_with_a_foreign_value_somewhere_are_refused_or_are_frames(frame, data):
    fields = msgpack.unpackb(frame.encode())
    inside = fields
    while True:
        at = data.draw(st.integers(0, len(inside) - 1))
        deeper = isinstance(inside[at], list) and inside[at] and data.draw(st.booleans())
        if not deeper:
            break
        inside = inside[at]
    inside[at] = data.draw(anything)
    refused_or_decoded(msgpack.packb(fields))


@pytest.mark.parametrize("depth", [1, 100, 500])
@pytest.mark.parametrize("place", ["version", "kind", "device", "nonce", "number", "body"])
def test_deep_nesting_is_refused_wherever_it_stands(place, depth):
    assert refused_or_decoded(envelope(1, [], **{place: nested(depth)})) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"version": FORMAT - 1},
        {"version": FORMAT + 1},
        {"version": True},
        {"version": 1.0},
        {"kind": True},
        {"kind": 2**63},
        {"kind": "1"},
        {"device": ""},
        {"device": "x" * 256},
        {"device": b"pi-1"},
        {"incarnation": 2**30},
        {"incarnation": -1},
        {"nonce": 2**32},
        {"nonce": None},
        {"number": 2**40},
        {"number": -1},
        {"number": 0},
        {"about": ""},
        {"about": 5},
        {"about": "x" * 256},
        {"about": "pi\n"},
        {"number": True},
        {"body": {}},
        {"body": None},
        {"extras": []},
        {"extras": None},
        {"extras": {}, "more": 1},
    ],
    ids=repr,
)
def test_a_wrong_envelope_is_refused(changed):
    with pytest.raises(FrameError):
        decode(envelope(6, ["v"], **changed))


def test_extras_that_a_reader_does_not_know_are_ignored():
    asked = decode(envelope(6, ["v"], about="pi-2", extras={"group": "east"}))
    assert asked == AskFrame(ME, 1, "pi-2", "v")


def test_a_frame_of_the_former_format_is_refused_with_that_reason():
    former = [2, 6, "pi-1", 1, 7, 1, ["v"], {}]
    with pytest.raises(FrameError, match="format 2, and this lasp-edge reads format 3"):
        decode(msgpack.packb(former))


@pytest.mark.parametrize("kind", [PaneFrame, BeatFrame, PresenceFrame, VariableFrame])
def test_what_a_device_says_of_itself_is_about_no_other_device(kind):
    bodies = {
        1: [[], []],
        2: ["v", 5, 0, [""], [0], [[1]]],
        3: [[], False, [], 0, None, []],
        4: [True, "", ""],
    }
    body = bodies[kind.kind]
    assert decode(envelope(kind.kind, body)).about == "pi-1"
    assert decode(envelope(kind.kind, body, about="pi-1")).about == "pi-1"
    with pytest.raises(FrameError, match="about another device"):
        decode(envelope(kind.kind, body, about="pi-2"))
