"""Sensors of the kernel, from a tree of files as the kernel writes them."""

import random
from fractions import Fraction

import pytest

from device_agent.agent.sources.hwmon import Hwmon
from device_agent.agent.sources.iio import Iio
from device_agent.agent.sources.onewire import BAD_CHECKSUM, POWER_ON, OneWire
from device_agent.agent.sources.sensors import LOOK_AGAIN_US, NOT_READ
from device_agent.agent.sources.source import SourceContext

HOUSE = ["temperature", "humidity", "pressure", "voltage", "co2", "power"]
SECOND_US = 1_000_000


def context(events=HOUSE, **options):
    return SourceContext(events, "pi-1", random.Random(1), options=options)


def write(root, path, **files):
    directory = root / path
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(f"{text}\n")
    return directory


def read(source, now_us=0):
    batch = source.poll(now_us)
    rows = zip(batch.names, batch.values, map(dict, batch.tags), strict=True)
    return list(rows), batch.refused


@pytest.fixture
def board(tmp_path):
    """A board with a power supply, a fan and a chip that measures the air."""
    at = "sys/class/hwmon/hwmon"
    write(tmp_path, f"{at}0", name="cpu_thermal", temp1_input=48312, temp1_crit=110000)
    write(tmp_path, f"{at}1", name="rpi_volt", in0_lcrit_alarm=0)
    write(tmp_path, f"{at}2", name="sht3x", temp1_input=-1250, humidity1_input=44720)
    write(tmp_path, f"{at}2", temp2_input=0, temp2_fault=1)
    write(tmp_path, f"{at}3", name="ina219", in1_input=5092, in1_label="5V", power1_input=1340000)
    write(tmp_path, f"{at}3", in10_input=3300, pwm1_input=1)
    return tmp_path


def test_hwmon_gives_every_sensor_in_units_of_people(board):
    source = Hwmon("hwmon", context(), board)
    source.open(None)
    rows, refused = read(source)
    assert rows == [
        ("temperature", Fraction("48.312"), {"chip": "cpu_thermal", "sensor": "temp1"}),
        ("humidity", Fraction("44.72"), {"chip": "sht3x", "sensor": "humidity1"}),
        ("temperature", Fraction("-1.25"), {"chip": "sht3x", "sensor": "temp1"}),
        ("voltage", Fraction("5.092"), {"chip": "ina219", "sensor": "5V"}),
        ("voltage", Fraction("3.3"), {"chip": "ina219", "sensor": "in10"}),
        ("power", Fraction("1.34"), {"chip": "ina219", "sensor": "power1"}),
    ]
    assert refused == {"the chip reports a fault of the sensor": 1}
    assert source.says() == (
        "found cpu_thermal temp1 (temperature), sht3x humidity1 (humidity), "
        "sht3x temp1 (temperature), sht3x temp2 (temperature), ina219 5V (voltage), "
        "ina219 in10 (voltage), ina219 power1 (power)"
    )


def test_only_some_sensors_and_names_and_tags_of_ones_own(board):
    names = {"temp1": "desk"}
    source = Hwmon(
        "hwmon",
        context(only=["sht3x"], names=names, **{"with-tag": {"floor": "1"}}),
        board,
    )
    source.open(None)
    rows, _ = read(source)
    assert rows == [
        ("humidity", Fraction("44.72"), {"chip": "sht3x", "sensor": "humidity1", "floor": "1"}),
        ("temperature", Fraction("-1.25"), {"chip": "sht3x", "sensor": "desk", "floor": "1"}),
    ]


def test_a_machine_without_sensors_says_so_and_what_to_do(tmp_path, board):
    nothing = OneWire("onewire", context(), tmp_path / "empty")
    nothing.open(None)
    assert nothing.says() == (
        "no sensor in /sys/bus/w1/devices; is dtoverlay=w1-gpio in /boot/firmware/config.txt, "
        "and the sensor wired?"
    )
    others = Hwmon("hwmon", context(["temp"]), board)
    others.open(None)
    assert others.says() == (
        'the sensors here measure "humidity", "power", "temperature", "voltage"; '
        'the program has only "temp"'
    )


def test_iio_scales_what_is_raw_and_takes_what_is_processed(tmp_path):
    at = "sys/bus/iio/devices/iio:device"
    bme = {"in_temp_input": 21540, "in_pressure_input": "101.325390625"}
    write(tmp_path, f"{at}0", name="bme280", in_humidityrelative_input=44720, **bme)
    si = {"in_temp_raw": 6892, "in_temp_scale": "10.725097656", "in_temp_offset": -4368}
    write(tmp_path, f"{at}1", name="si7020", **si)
    adc = {"in_voltage0_raw": 512, "in_voltage1_raw": 1023, "in_voltage_scale": "3.222656250"}
    write(tmp_path, f"{at}2", name="mcp3008", in_voltage1_label="battery", **adc)
    co2 = {"in_concentration_co2_raw": 415, "in_concentration_co2_scale": "0.0001"}
    write(tmp_path, f"{at}3", name="scd30", label="hall", **co2)
    write(tmp_path, "sys/bus/iio/devices/trigger0", name="trigger")
    source = Iio("iio", context(), tmp_path)
    source.open(None)
    rows, refused = read(source)
    assert rows == [
        ("humidity", Fraction("44.72"), {"chip": "bme280", "sensor": "humidityrelative"}),
        ("pressure", Fraction("1013.25390625"), {"chip": "bme280", "sensor": "pressure"}),
        ("temperature", Fraction("21.54"), {"chip": "bme280", "sensor": "temp"}),
        (
            "temperature",
            (6892 - 4368) * Fraction("0.010725097656"),
            {"chip": "si7020", "sensor": "temp"},
        ),
        ("voltage", 512 * Fraction("0.00322265625"), {"chip": "mcp3008", "sensor": "voltage0"}),
        ("voltage", 1023 * Fraction("0.00322265625"), {"chip": "mcp3008", "sensor": "battery"}),
        ("co2", 415, {"chip": "scd30", "sensor": "hall"}),
    ]
    assert refused == {}


def slave(root, number, celsius_m, crc="YES"):
    line = "4b 01 4b 46 7f ff 05 10 e1"
    text = f"{line} : crc=e1 {crc}\n{line} t={celsius_m}"
    return write(root, f"sys/bus/w1/devices/{number}", w1_slave=text)


FIRST, SECOND = "28-000005e2fdc3", "28-00000622a1b9"


def at_once(work):
    work()


def test_onewire_reads_every_thermometer(tmp_path):
    slave(tmp_path, FIRST, 20687)
    slave(tmp_path, SECOND, -62)
    write(tmp_path, "sys/bus/w1/devices/10-000802824e58", temperature=21500)
    write(tmp_path, "sys/bus/w1/devices/w1_bus_master1", w1_master_slave_count=3)
    write(tmp_path, "sys/bus/w1/devices/29-000000000001", name="a switch")
    source = OneWire("onewire", context(names={SECOND: "freezer"}), tmp_path, at_once)
    source.open(None)
    assert source.says() == (
        f"found 10-000802824e58 (temperature), {FIRST} (temperature), {SECOND} (temperature)"
    )
    assert read(source)[0] == [
        ("temperature", Fraction("21.5"), {"sensor": "10-000802824e58"}),
        ("temperature", Fraction("20.687"), {"sensor": FIRST}),
        ("temperature", Fraction("-0.062"), {"sensor": "freezer"}),
    ]


def test_a_wrong_checksum_is_no_reading(tmp_path):
    slave(tmp_path, FIRST, 20687, "NO")
    source = OneWire("onewire", context(), tmp_path, at_once)
    source.open(None)
    assert read(source) == ([], {BAD_CHECKSUM: 1})


def test_the_power_on_value_counts_only_in_a_sauna(tmp_path):
    source = OneWire("onewire", context(), tmp_path, at_once)
    found = []
    for number, celsius_m in enumerate([85_000, 20_000, 85_000, 76_000, 85_000, 86_000, 85_000]):
        slave(tmp_path, FIRST, celsius_m)
        source.open(None)
        rows, refused = read(source, number * 10 * SECOND_US)
        found.append(float(rows[0][1]) if rows else refused)
    assert found == [{POWER_ON: 1}, 20.0, {POWER_ON: 1}, 76.0, 85.0, 86.0, 85.0]


def test_the_agent_goes_on_while_slow_sensors_measure(tmp_path):
    slave(tmp_path, FIRST, 20687)
    waiting = []
    source = OneWire("onewire", context(), tmp_path, waiting.append)
    source.open(None)
    assert source.poll(0) is None
    assert source.due_us(5) == 100_005
    assert source.poll(100_005) is None
    assert source.poll(60 * SECOND_US) is None
    assert len(waiting) == 1, "one at a time"
    waiting.pop()()
    assert read(source, 61 * SECOND_US)[0][0][1] == Fraction("20.687")
    assert source.due_us(61 * SECOND_US) == 10 * SECOND_US, "the next is overdue"


def test_a_sensor_that_is_pulled_out_is_counted_and_found_again(tmp_path):
    directory = slave(tmp_path, FIRST, 20000)
    source = OneWire("onewire", context(), tmp_path, at_once)
    source.open(None)
    (directory / "w1_slave").unlink()
    assert read(source) == ([], {NOT_READ: 1})
    directory.rmdir()
    assert read(source, LOOK_AGAIN_US) == ([], {NOT_READ: 1}), "and looked for"
    assert source.poll(2 * LOOK_AGAIN_US) is None, "nobody knows of it any more"
    slave(tmp_path, SECOND, 21000)
    assert source.poll(3 * LOOK_AGAIN_US) is None, "found now"
    assert read(source, 4 * LOOK_AGAIN_US)[0][0][1] == 21
