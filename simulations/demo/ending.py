"""How the demo ends: the tables shown, the results checked, the bytes counted."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from lasp_edge.errors import Exit
from lasp_edge.program import Window
from simulations.demo.checks import Evidence, Row, Verdict, verdicts
from simulations.demo.live import aligned, decimals, in_words, number
from simulations.demo.stage import Stage
from simulations.demo.traffic import Traffic, json_bytes

CLOUD_S = 120.0
ROWS_SHOWN = 5
_STATUS = {"tentative": "not final yet", "final": "final", "revised": "corrected"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


async def finish(stage: Stage, rate: str) -> int:
    """Wait for Spark, end the devices, and say what came of it.

    Args:
        stage: everything, settled.
        rate: how often was measured, in words.

    Returns:
        The exit code.
    """
    sent = sum(device.relay.sent_bytes for device in stage.devices.values())
    received = sum(device.relay.received_bytes for device in stage.devices.values())
    stage.screen.show([])
    if not stage.screen.is_terminal or stage.measure:
        stage.say(*stage.table(), "")
    stage.say("Spark merges what is left ...")
    await stage.wait_for_cloud(CLOUD_S)
    values = {name: d.report.values for name, d in stage.devices.items() if d.report is not None}
    await stage.stop_devices()
    evidence = await _evidence(stage, values)
    for window in stage.cast.program.windows.values():
        stage.say("", *window_lines(window, evidence.windows[window.name]))
    readings = evidence.all_readings()
    found = verdicts(evidence)
    json = json_bytes(stage.cast.program.name, readings)
    stage.say("", *map(str, found), *traffic_lines(Traffic(sent, received, json, len(readings)), rate))
    return _result(stage, found)
