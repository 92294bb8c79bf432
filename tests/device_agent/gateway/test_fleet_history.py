"""What a gateway keeps of rows over the fleet: parts, and all of them as one now and then."""

from device_agent.gateway import fleet_history
from device_agent.gateway.fleet_history import GatewayHistory
from device_agent.gateway.kept import FleetChanges
from lasp_edge.event import Event
from lasp_edge.ordered.outputs import NO_TAGS
from lasp_edge.ordered.results import ResultRow
from tests.device_agent.gateway.support_streams import FIRST_US, doors


def row(at_us, value):
    event = Event("all", value, at_us, "", NO_TAGS, "")
    return (at_us, "", ("all", value), ()), ResultRow(event, "tentative", 0)


def test_a_row_that_is_gone_is_not_read_while_its_parts_become_one(keeper, monkeypatch):
    monkeypatch.setattr(fleet_history, "MOST_PARTS", 2)
    history = GatewayHistory(doors(), keeper)
    first, second = row(FIRST_US, 1), row(FIRST_US + 1, 2)
    for each in (first, second):
        history.put_rows("all", [each], {})
        keeper.commit(FleetChanges(result_parts=history.take_rows()))
    history.put_rows("all", [(first[0], None)], {})

    def read(made):
        cells = made.rows("all", FIRST_US - 10**8, FIRST_US + 10**8)
        return [dict(rows) for _, rows in cells]

    assert read(history) == [dict([second])]
    keeper.commit(FleetChanges(result_parts=history.take_rows()))
    assert read(history) == read(GatewayHistory(doors(), keeper)) == [dict([second])]
