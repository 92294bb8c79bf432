"""Options of a gateway that are no numbers to work with are refused in one line."""

import pytest

from lasp_edge.errors import Exit
from tests.device_agent.support_stage import typed

GREENHOUSE = "lasp_edge.examples.greenhouse:program"


@pytest.mark.parametrize(
    "option", ["--retain-days", "--history-days", "--commit-every", "--results", "--until-idle"]
)
@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e12"])
def test_a_number_that_cannot_be_is_refused_with_those_that_can(tmp_path, option, value):
    words = ["gateway", GREENHOUSE, "--broker", "mqtt://127.0.0.1:1", "--data-dir", tmp_path / "g"]
    done = typed(*words, f"{option}={value}")
    assert done.returncode == Exit.USAGE
    most = "100,000" if option.endswith("days") else "1,000,000,000"
    assert f"{option}: a number from 0 to {most}, not " in done.stderr
    assert not (tmp_path / "g").exists()
