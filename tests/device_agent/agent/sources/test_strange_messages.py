"""Whatever a message holds, it gives readings or a reason, and the source goes on."""

from hypothesis import given
from hypothesis import strategies as st

from device_agent.agent.sources.mapping import FieldMapping, Origin
from device_agent.agent.sources.time_zones import Zone
from device_agent.agent.sources.values import EventRule, rule_of_table
from lasp_edge.folds.numbers import Refused, Resolution

KEYS = st.sampled_from(["t", "h", "at", "list", "unit", "room", "a.b", "", "Temperature"])
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["ON", "open", "unavailable", "1e400", "2026-03-29T02:30:00", "9999-12-31"]),
    st.dates().map(str),
    st.datetimes().map(str),
)
VALUES = st.recursive(
    PLAIN,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=8,
)
RECORDS = st.dictionaries(KEYS, VALUES, max_size=5)
SCALED = rule_of_table("t", {"field": "t", "scale": "5/9", "offset": "0.1", "values": {"open": 3}})
MAPPINGS = [
    lambda: FieldMapping(["t", "h"], tags={"room": "room"}, absent=("unavailable",)),
    lambda: FieldMapping({"t": SCALED, "h": EventRule("list[1].h", required=True)}, time="at"),
    lambda: FieldMapping({"t": "{s}.t", "h": "h"}, time="at", zone=Zone("Europe/Berlin")),
    lambda: FieldMapping(["t"], items="list", expected={"unit": "C"}, time="at"),
    lambda: FieldMapping(["t", "h"], value="a.b", device_field="room", device="x"),
]


@given(
    st.sampled_from(MAPPINGS),
    st.lists(RECORDS, max_size=4),
    st.sampled_from([Origin({}), Origin({"room": "r"}, "t")]),
)
def test_any_record_gives_readings_or_a_reason(make, records, origin):
    batch = make().batch("s", records, [origin] * len(records))
    columns = (batch.names, batch.times_us, batch.values, batch.tags)
    assert len(set(map(len, columns))) == 1
    assert all(len(reason) < 200 for reason in batch.refused)
    for quantised in Resolution("0.01").quantise_column(batch.values):
        assert type(quantised) is int or isinstance(quantised, Refused)


@given(PLAIN | VALUES, st.text(max_size=30), st.sampled_from([None, "t", "nowhere"]))
def test_any_bare_value_gives_a_record_or_a_reason(value, level, event):
    mapping = FieldMapping(["t", "h"])
    found = mapping.record_of_value(value, level, event)
    assert isinstance(found, str | dict)
    mapping.batch("s", [found])
