"""The bytes of JSON over MQTT, counted by hand."""

from simulations.demo.traffic import Pace, Traffic, json_bytes, traffic_lines
from simulations.oracle import Reading


def test_a_reading_costs_its_publish_and_its_acknowledgement():
    payload = b'{"device":"pi-1","event":"cpu","time_us":1700000000000000,"value":12.5}'
    topic = b"demo/pi-1/cpu"
    remaining = 2 + len(topic) + 2 + len(payload)
    assert remaining < 128
    publish = 1 + 1 + remaining
    puback = 4
    reading = Reading("pi-1", "cpu", 12.5, 1_700_000_000_000_000)
    assert json_bytes("demo", [reading]) == publish + puback
    assert json_bytes("demo", [reading] * 3) == 3 * (publish + puback)


def test_tags_and_letters_beyond_ascii_cost_their_bytes_and_a_longer_length():
    tagged = Reading("pi-1", "cpu", 12.5, 1_700_000_000_000_000, {"room": "Küche"})
    plain = Reading("pi-1", "cpu", 12.5, 1_700_000_000_000_000)
    more = len(',"tags":{"room":"Küche"}'.encode())
    assert json_bytes("demo", [tagged]) == json_bytes("demo", [plain]) + more


def test_a_publish_of_128_bytes_and_more_has_a_length_of_two():
    short, long = (Reading("pi-1", "cpu", "x" * n, 0) for n in (10, 210))
    assert json_bytes("demo", [long]) - json_bytes("demo", [short]) == 200 + 1


def test_more_bytes_than_json_are_told_as_such_with_the_rate_from_which_it_pays():
    lines = " ".join(traffic_lines(Traffic(60_000, 60_000, 40_000, 400, Pace.of(400, 10, 20.0))))
    assert "120,000 over the devices' sockets (60,000 sent, 60,000 received)" in lines
    assert "3.00 times as much as the 40,000 of JSON over MQTT" in lines
    assert "(400 readings, 2.0 a second each); below 6, JSON is smaller." in lines


def test_a_recording_says_nothing_about_a_rate():
    lines = " ".join(traffic_lines(Traffic(10, 10, 40, 4, Pace("replayed at full speed"))))
    assert "50 % less than the 40 of JSON over MQTT" in lines
    assert "(4 readings, replayed at full speed)." in lines
    assert "At the recorded pace the agents would run longer and send more." in lines
    assert "a second" not in lines


def test_no_reading_is_no_division_by_zero():
    lines = traffic_lines(Traffic(10, 10, 0, 0, Pace.of(0, 5, 1.0)))
    assert [line.split()[0] for line in lines] == ["(e)", "no"]
