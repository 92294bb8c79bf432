"""What the fleet sent beside JSON: counts of the same moment, over restarts, or a reason."""

from device_agent.console.dashboard.ledger import NOBODY_REPORTS, NOT_YET, Ledger

JSON_OF_A_READING = len(b"\x32\x00" + b"\x00\x00" + b"house/attic/temperature" + b"\x00\x00") + len(
    b'{"time":1700000000.123,"value":21.37}'
)


def test_nothing_is_compared_before_a_minute_was_told():
    ledger = Ledger("house")
    assert ledger.plain() == {"why_not": NOBODY_REPORTS}
    ledger.note("attic", 5, 3_000, 0)
    ledger.note("attic", 9, 4_000, 3)
    assert ledger.plain() == {"why_not": NOT_YET}
    ledger.note("attic", 65, 4_600, 60)
    told = {"devices": 1, "readings": 60, "sent": 1_600, "json": 60 * JSON_OF_A_READING}
    assert ledger.plain() == told
    ledger.note("attic", 65, 4_600, 90)
    assert ledger.plain() == told


def test_an_agent_that_was_started_again_begins_anew():
    ledger = Ledger("house")
    for readings, sent, at_s in ((0, 0, 0), (60, 500, 60), (70, 90, 80), (130, 690, 140)):
        ledger.note("attic", readings, sent, at_s)
    told = ledger.plain()
    assert (told["readings"], told["sent"]) == (60 + 60, 500 + 600)


def test_a_device_whose_kernel_does_not_count_is_left_out():
    ledger = Ledger("house")
    for at_s, readings in ((0, 0), (60, 60)):
        ledger.note("attic", readings, 0, at_s)
        ledger.note("shed", readings, 10 * readings, at_s)
    assert ledger.plain()["devices"] == 1
