"""The demo in Spark, as a newcomer starts it: five devices, and every program and every fold."""

import json

import pytest

from lasp_edge import folds
from lasp_edge.folds.fold import Fold
from tests.conftest import CHECKOUT
from tests.simulations.everything import FOLDS, SPEC, WRITTEN, program
from tests.simulations.support_demo import demo, outcomes
from tests.support_readme import checks_shown, shape

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
    built_in = {
        name
        for name, made in vars(folds).items()
        if name.islower() and isinstance(made, type) and issubclass(made, Fold)
    }
    of_fields = {"weighted_mean", "correlation", "regression"}  # windows of tables have them alone
    assert built_in - of_fields == FOLDS.keys() - {"range"}
    written = {names["program"].prefix for names in WRITTEN if "program" in names}
    folded = {"greenhouse", "cold_chain", "rooms", "doors", "cellars", "talk", "entrance"}
    assert written == folded | {"water", "laundry", "cold_room", "climate", "words"} | {
        "washroom",
        "hothouse",
        "press",
    }


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_every_program_of_the_readme_and_every_fold_is_replayed_and_found_right(warm_jvm, tmp_path):
    lines = tmp_path / "recorded.jsonl"
    lines.write_text("".join(f"{json.dumps(line)}\n" for line in recorded()))
    with warm_jvm.lent():
        printed = demo(tmp_path, SPEC, "--replay", str(lines), *fields(), working_in=CHECKOUT)
    assert outcomes(printed) == ["(a) ok ", "(b) ok ", "(c) ok ", "(d) ok ", "(e) byt"]
    more = len(PLAN.dynamic_folds) - 3
    assert f"and {more} more alike" in " ".join(" ".join(printed).split())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.broker
def test_five_devices_agree_and_spark_confirms_it(warm_jvm, tmp_path):
    with warm_jvm.lent():
        lines = demo(tmp_path)
    assert outcomes(lines) == ["(a) ok ", "(b) ok ", "(c) ok ", "(d) ok ", "(e) byt", "(f) ok "]
    assert list(tmp_path.iterdir()) == []
    printed = [shape(line)[:4] for line in lines]
    for begins in checks_shown():
        assert begins in printed, "the README shows another output"
