"""The rows of results that `lasp-edge status` prints."""

from device_agent.console.command.status import _rows

ROW = {"key": "attic", "time_us": 0, "status": "final", "revision": 0, "used": 0.004, "to": 7.5}


def test_a_value_is_printed_with_all_decimals_of_its_step():
    _, _, line = _rows("used", [ROW], {"used": "0.001", "to": "1"})
    assert line.split() == ["attic", "1970-01-01", "00:00:00", "0.004", "7.50", "final"]
