"""A set from which handlers remove what was never added is named."""

import pytest

from crdts import ORSet
from lasp_edge import Event, Program
from lasp_edge.checking.trial import tried


def doors(added, removed, **event):
    program = Program("doors")
    door = program.event("door", **event)
    open_now = program.declare(ORSet(), "open_now")

    @program.on_event(door)
    def turned(event, update):
        if event.value:
            update(open_now, ORSet.add, added(event))
        if not event.value or isinstance(event.value, str):
            update(open_now, ORSet.remove, removed(event))

    return tried(program.plan()).doubts


SWITCH = {"resolution": "1", "least": 0, "most": 1}
READ = Event("door", 0, 0, "pi-1", {"room": "attic"})
ROOM = lambda event: event.tags["room"]  # noqa: E731 - as in the docs


@pytest.mark.parametrize(
    ("added", "removed", "is_named"),
    [
        (ROOM, lambda event: event.device, True),
        (ROOM, lambda event: f"room {event.tags['room']}", True),
        (ROOM, lambda event: (event.tags["room"],), True),
        (ROOM, ROOM, False),
        (
            lambda event: (ROOM(event), event.device),
            lambda event: (ROOM(event), event.device),
            False,
        ),
        (lambda event: (ROOM(event), event.value), lambda event: (ROOM(event), event.value), False),
    ],
    ids=["device", "longer", "tuple", "right", "both", "number"],
)
def test_a_remove_of_what_was_never_added_is_named(added, removed, is_named):
    lines = doors(added, removed, **SWITCH)
    assert [line.partition(":")[0] for line in lines] == ["variable open_now"] * is_named
    assert all(line.endswith("; remove what was added") for line in lines)
    assert not is_named or ("the name of a device" in lines[0]) == (removed(READ) == "pi-1")


def test_of_texts_that_are_made_up_nothing_is_said():
    texts = {"text": True, "examples": ["in ann", "out bob"]}
    assert doors(lambda e: e.value.split()[1], lambda e: e.value.split()[0], **texts) == []
