"""The demo without a cloud: ten agents, a gateway and a broker as processes, nothing replaced."""

import pytest

from lasp_edge.errors import EnvironmentLacks
from simulations.demo.broker import find_broker
from tests.simulations.support_demo import demo
from tests.support_missing import lacks

MOST_LINES = 70


@pytest.mark.slow
@pytest.mark.broker
def test_an_evening_of_ten_devices_ends_with_the_right_windows(tmp_path):
    try:
        find_broker()
    except EnvironmentLacks as error:
        lacks(str(error))
    lines = demo(tmp_path, "--no-cloud")
    text = "\n".join(lines)
    assert [line[:7] for line in lines if line.startswith("(")] == [
        "(a) ok ", "(b) ok ", "(c) -  ", "(d) ok ", "(e) byt", "(f) ok ", "(g) ok "
    ]  # fmt: skip
    assert sum(not line.startswith("  ... ") for line in lines) <= MOST_LINES, text
    assert max(map(len, lines)) <= 80, text
    assert "The gateway is killed (SIGKILL)" in text
    assert "waits for garage" in text
    assert text.count("An operator says: ") == 2
    assert "set for the past, revised " in " ".join(text.split())
