"""What the README shows of published values comes out as shown, on a real broker."""

import json
import subprocess

import pytest

from device_agent.agent.timing.system_clock import wall_us
from simulations.processes.broker import PrivateBroker
from tests.brokers import PATIENCE_S, broker_program, until_true
from tests.support_readme import block, commands, here, replaced, succeeds


@pytest.mark.slow
@pytest.mark.broker
def test_values_are_published_watched_and_printed_as_shown(tmp_path):
    agent, get, watch, status = commands(block("values"))
    start_s = wall_us() // 10_000_000 * 10 - 10  # all in one slide, so every window has all three
    readings = [{"ts": start_s + n, "temperature": 20 + n} for n in range(3)]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, readings)))
    quick = {"--source host": "--source jsonl:r.jsonl --time ts --interval 0.3"}
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        words = here(replaced(agent, quick), tmp_path, broker.url)
        running = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        try:
            until_true(lambda: "3 readings" in running.stdout.readline(), 60)
            told = succeeds([*here(get, tmp_path, broker.url), "--wait", "60"], tmp_path)
            assert told == "21.0\n"
            table = succeeds([*here(watch, tmp_path, broker.url), "--once"], tmp_path)
            assert "kitchen" in table
            assert "21.00 °C" in table
            printed = succeeds(here(status, tmp_path, broker.url), tmp_path)
            rows = [line.split() for line in printed.splitlines() if line.startswith("  kitchen")]
            assert rows
            assert all("21.00" in row for row in rows)
        finally:
            running.terminate()
            assert running.wait(timeout=PATIENCE_S) == 0
