import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud_tier.lander.segments import Log
from lasp_edge.errors import UsageError
from lasp_edge.protocol.acceptance import Record
from lasp_edge.protocol.frontier import Listening

RECORD = Record(5, "lasp/v1/rooms/00/pane/pi-0", retained=False, payload=b"abc")
CLOCK = Listening(9, 2)


def test_closed_segment_gives_its_records_and_last_clock(tmp_path):
    log = Log(tmp_path, "a")
    log.append(RECORD, since_us=1)
    log.append(RECORD._replace(retained=True, payload=b""), since_us=1)
    number = log.close_segment(CLOCK)
    records = [RECORD, RECORD._replace(retained=True, payload=b"")]
    assert log.read(number) == (number, CLOCK, records)


def test_segment_without_messages_is_a_clock_alone(tmp_path):
    log = Log(tmp_path, "a")
    assert log.read(log.close_segment(CLOCK)) == (1, CLOCK, [])


@given(cut=st.integers(min_value=0, max_value=200))
def test_torn_end_is_left_out_and_what_was_synced_before_stays(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("log")
    log = Log(folder, "a")
    log.append(RECORD, since_us=1)
    log.sync()
    (path,) = folder.glob("*.segment")
    synced = path.stat().st_size
    log.append(RECORD._replace(received_us=6), since_us=1)
    log.sync()
    written = path.read_bytes()
    path.write_bytes(written[: max(synced, len(written) - cut)])
    segment = log.read(1)
    assert segment.records[0] == RECORD
    assert len(segment.records) == (2 if cut == 0 else 1)
    assert segment.clock == Listening(segment.records[-1].received_us, 1)
    log.release()


def test_damaged_byte_ends_the_segment(tmp_path):
    log = Log(tmp_path, "a")
    log.append(RECORD, since_us=1)
    log.close_segment(CLOCK)
    (path,) = tmp_path.glob("*.segment")
    written = bytearray(path.read_bytes())
    written[-30] ^= 1
    path.write_bytes(written)
    assert log.read(1).records in ([], [RECORD])


def test_new_process_goes_on_with_a_new_number_and_the_same_id(tmp_path):
    first = Log(tmp_path, "a")
    first.append(RECORD, since_us=1)
    first.sync()
    first.release()
    second = Log(tmp_path, "b")
    assert second.lander == "a"
    assert second.closed() == [1]
    second.append(RECORD, since_us=1)
    assert second.closed() == [1]
    assert second.close_segment(CLOCK) == 2


def test_number_that_has_landed_is_not_given_again(tmp_path):
    log = Log(tmp_path, "a")
    log.start_after(41)
    assert log.close_segment(CLOCK) == 42


def test_second_process_on_one_log_is_refused(tmp_path):
    log = Log(tmp_path, "a")
    with pytest.raises(UsageError, match="another lander"):
        Log(tmp_path, "a")
    log.release()
