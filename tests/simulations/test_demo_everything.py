"""The demo checks every program of the README and every fold, with and without keys."""

from lasp_edge import folds
from tests.simulations.everything import FOLDS, WRITTEN, program

PLAN = program.plan()
ROOMS = ("attic", "bath", "cellar")
DEVICES = ("a", "b", "c")


def recorded() -> list[dict]:
    """Some minutes of three devices, each in one room and then in another."""
    return [
        {
            "ts": 1_735_689_600 + 7 * at,
            "device": device,
            "t": round(20 + at * 0.31 * (number - 1.2), 2),
            "door": (at + number) % 3 - 1,
            "room": ROOMS[(number + at // 12) % 3],
            "truck": f"truck {at % 2}",
        }
        for at in range(24)
        for number, device in enumerate(DEVICES)
    ]


def fields() -> list[str]:
    """How a line becomes a reading of every event."""
    fields = ["--time", "ts", "--device", "device", "--tag", "room=room", "--tag", "truck=truck"]
    for name in PLAN.events:
        fields += ["--event", f"{name}={'door' if 'door' in name else 't'}"]
    return fields


def test_everything_is_in_the_program():
    assert folds.__all__ == sorted([*(FOLDS.keys() - {"range"}), "as_fold", "fold_of"])
    written = {names["program"]._prefix for names in WRITTEN if "program" in names}
    assert written == {"greenhouse", "cold_chain", "rooms", "doors", "talk"}
