"""The machine's own metrics, from files as Linux writes them."""

import pytest

from device_agent.agent.sources.host import EVENTS, Host

STAT = "cpu  {user} 0 10 {idle} 10 0 0 0 0 0\ncpu0 1 2 3\nintr 5\n"
NET = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets
    lo: {received}    1    0    0    0     0          0         0  {sent}    1  0 0 0 0 0 0
  eth0: {received}    1    0    0    0     0          0         0  {sent}    1  0 0 0 0 0 0
 wlan0:1000    1    0    0    0     0          0         0  0    1  0 0 0 0 0 0
"""


@pytest.fixture
def machine(tmp_path):
    """Return a function that sets what the machine shows."""

    def show(user=100, idle=880, received=0, sent=0):
        proc, zone = tmp_path / "proc", tmp_path / "sys/class/thermal/thermal_zone2"
        (proc / "net").mkdir(parents=True, exist_ok=True)
        zone.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/class/thermal/thermal_zone10").mkdir(exist_ok=True)
        (proc / "stat").write_text(STAT.format(user=user, idle=idle))
        (proc / "meminfo").write_text("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 750 kB\n")
        (proc / "net/dev").write_text(NET.format(received=received, sent=sent))
        (proc / "loadavg").write_text("0.52 0.58 0.59 1/99 1234\n")
        (zone / "temp").write_text("48312\n")
        (zone.parent / "thermal_zone10/temp").write_text("99999\n")
        return tmp_path

    return show


def test_all_metrics_of_a_machine(machine):
    host = Host(EVENTS, root=machine())
    host.open(None)
    first = host.poll(5_000_000)
    assert dict(zip(first.names, first.values, strict=True)) == {
        "memory": 25.0,
        "temperature": 48.312,
        "load": 0.52,
    }
    machine(user=130, idle=945, received=3_000, sent=2_000)
    second = host.poll(7_000_000)
    assert dict(zip(second.names, second.values, strict=True)) == {
        "cpu": pytest.approx(100 * 30 / 95),
        "memory": 25.0,
        "temperature": 48.312,
        "network": 2_500.0,
        "load": 0.52,
    }
    assert second.times_us == [None] * 5
    assert (second.source, second.cursor, second.done) == ("host", None, False)


def test_only_declared_events_are_read_and_tagged(machine):
    host = Host(["temperature", "humidity"], tags={"room": "a"}, root=machine())
    batch = host.poll(0)
    assert (batch.names, batch.tags) == (["temperature"], [{"room": "a"}])


def test_readings_keep_their_period_and_missed_ones_are_not_made_up_for(machine):
    host = Host(["load"], period_us=1_000, root=machine())
    assert host.due_us(5_000) == 5_000
    assert host.poll(5_000) is not None
    assert host.due_us(5_000) == 6_000
    assert host.poll(5_999) is None
    assert host.poll(6_400) is not None
    assert host.due_us(6_400) == 7_000
    assert host.poll(9_100) is not None
    assert host.due_us(9_100) == 10_000


def test_counters_that_ran_backwards_give_no_reading(machine):
    host = Host(["cpu", "network"], root=machine(user=500, received=10_000))
    assert host.poll(0) is None
    machine(user=100, received=0)
    assert host.poll(1_000_000) is None
    machine(user=200, received=500)
    assert host.poll(2_000_000).names == ["cpu", "network"]


def test_a_machine_that_shows_nothing_gives_nothing(tmp_path):
    host = Host(EVENTS, root=tmp_path)
    assert host.poll(0) is None
    assert host.due_us(0) == 1_000_000


def test_this_machine_gives_readings():
    host = Host(["memory", "load"])
    batch = host.poll(0)
    assert batch.names == ["memory", "load"]
    assert 0 < batch.values[0] < 100
