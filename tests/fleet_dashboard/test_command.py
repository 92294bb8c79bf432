"""`lasp-edge dashboard`: what it says where something lacks, and a lake's windows."""

import argparse
import http.client
import json
import socket
from decimal import Decimal

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cloud_tier.lake.definitions import record
from cloud_tier.lake.tables import Lake
from fleet_dashboard import command
from fleet_dashboard.board import Board
from fleet_dashboard.windows import MOST_ROWS, STARTS, LakeLook
from lasp_edge.errors import BrokerUnreachable, Exit, NotFound, UsageError
from simulations.demo.broker import PrivateBroker
from tests.brokers import broker_program, mosquitto, until_true
from tests.device_agent.agents import greenhouse

SECOND_US = 1_000_000
PROGRAM = greenhouse()


def arguments(url, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(["--fleet", "greenhouse", "--broker", url, "--port", "0", *words])


def closed_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["--port", "70000"], UsageError, "--port: a number from 0 to 65535, not 70000"),
        (["--lake", "/no/lake"], NotFound, "no lake with a table 'windows' in /no/lake"),
        ([], BrokerUnreachable, "Connection refused; is the broker started there"),
    ],
)
def test_what_lacks_is_said_before_a_page_is_served(words, error, said, monkeypatch, capsys):
    monkeypatch.setattr("device_agent.command.looking.CONNECT_S", 0.3)
    with pytest.raises(error, match=said):
        command.run(arguments(f"mqtt://127.0.0.1:{closed_port()}", *words))
    assert capsys.readouterr().out == ""


@pytest.mark.broker
def test_a_wrong_password_is_said_with_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setattr("device_agent.command.looking.CONNECT_S", 1)
    (tmp_path / "login").write_text("someone\nwrong\n")
    (tmp_path / "login").chmod(0o600)
    (tmp_path / "passwords").write_text("")
    lines = ("allow_anonymous false", f"password_file {tmp_path / 'passwords'}")
    with (
        mosquitto(tmp_path, *lines) as broker,
        pytest.raises(BrokerUnreachable, match="password") as error,
    ):
        command.run(arguments(broker.url, "--login", str(tmp_path / "login")))
    assert error.value.exit_code == Exit.ENVIRONMENT


@pytest.mark.broker
def test_it_says_where_the_page_is_and_goes_on_until_it_is_stopped(tmp_path, capsys, monkeypatch):
    asked = []

    def turned(shown):
        turn(shown)
        connection = http.client.HTTPConnection("127.0.0.1", shown.server.server_port, timeout=5)
        connection.request("GET", "/")
        asked.append(connection.getresponse().status)
        connection.close()
        if len(asked) > 1:
            raise KeyboardInterrupt

    turn = command.Dashboard.turn
    monkeypatch.setattr(command.Dashboard, "turn", turned)
    with (
        PrivateBroker(tmp_path / "broker", broker_program()) as broker,
        pytest.raises(KeyboardInterrupt),
    ):
        command.run(arguments(broker.url))
    assert capsys.readouterr().out.startswith("The page: http://127.0.0.1:")
    assert asked == [200, 200]


def row(start_s, revision=0, *, key="", status="final", devices=2, **columns):
    parts = {name: Decimal(n) if name in {"count", "total_q"} else n for name, n in columns.items()}
    return {
        "window": "by_room",
        "key": key,
        "start_us": start_s * SECOND_US,
        "end_us": (start_s + 60) * SECOND_US,
        "devices_in": devices,
        "devices_expected": 2,
        "excluded": "",
        "status": status,
        "revision": revision,
        "frontier": None,
        "stream": PROGRAM.windows["by_room"].stream,
        **parts,
    }


def write(lake, rows):
    columns = PROGRAM.windows["by_room"].fold.columns_named
    values = dict.fromkeys(columns, 100)
    schema = pa.schema(DeltaTable(lake.windows).schema().to_arrow())
    made = [
        {name: Decimal(value) if pa.types.is_decimal(schema.field(name).type) else value
         for name, value in (row | values).items()}
        for row in rows
    ]  # fmt: skip
    write_deltalake(lake.windows, pa.Table.from_pylist(made, schema=schema), mode="append")


@pytest.fixture
def lake(tmp_path):
    made = Lake(tmp_path / "lake")
    made.create(PROGRAM.columns)
    record(PROGRAM, made)
    return made


def told(board):
    (sheet,) = board.wait({}, 0)
    assert sheet.subject == "windows"
    return json.loads(sheet.text)


def test_a_lakes_windows_come_with_status_and_coverage_the_newest_first(lake):
    write(lake, [row(0), row(10, 0, status="tentative", devices=1), row(10, 1, key="attic")])
    board = Board()
    LakeLook(lake.root, board)
    (window,) = told(board)["windows"]
    assert (window["name"], window["parts"]) == ("by_room", ["count", "total", "low"])
    shown = [(r["start"], r["key"], r["status"], r["in"], r["expected"]) for r in window["rows"]]
    assert shown == [
        (10, "", "tentative", 1, 2),
        (10, "attic", "final", 2, 2),
        (0, "", "final", 2, 2),
    ]
    assert window["rows"][0]["parts"] == [100, 1.0, 1.0]


def test_only_the_last_starts_and_rows_are_shown(lake):
    write(lake, [row(10 * n) for n in range(2 * STARTS)])
    board = Board()
    LakeLook(lake.root, board)
    (window,) = told(board)["windows"]
    assert [r["start"] for r in window["rows"]] == [
        10 * n for n in reversed(range(STARTS, 2 * STARTS))
    ]
    write(lake, [row(10 * 2 * STARTS, key=str(n)) for n in range(2 * MOST_ROWS)])
    board = Board()
    LakeLook(lake.root, board)
    assert len(told(board)["windows"][0]["rows"]) == MOST_ROWS


def test_a_lake_is_read_again_only_where_it_grew(lake, monkeypatch):
    board, reads = Board(), []
    monkeypatch.setattr("fleet_dashboard.windows.LOOK_S", 0.01)
    look = LakeLook(lake.root, board)
    monkeypatch.setattr(
        "fleet_dashboard.windows._window", lambda *a: reads.append(a) or {"n": len(reads)}
    )
    look.look()
    assert reads == []
    write(lake, [row(0)])
    look.start()
    until_true(lambda: told(board)["windows"] == [{"n": 1}])
    monkeypatch.setattr(look, "_lake", Lake(f"{lake.root}-gone"))
    until_true(lambda: "no lake with a table" in (told(board)["trouble"] or ""))
    monkeypatch.setattr(look, "_lake", lake)
    until_true(lambda: told(board)["trouble"] is None)
    look.stop()
