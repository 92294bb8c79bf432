"""A fleet of many devices as the dashboard sees it, from the messages that they would publish."""

import json
from types import SimpleNamespace

from crdts import Replica
from device_agent.console.command.watch import FleetTable
from device_agent.console.dashboard.history import History
from device_agent.console.dashboard.picture import numbers, picture
from device_agent.console.view.fleet_view import FleetView
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.topics import Topics, topic_of
from tests.device_agent.agents import entry_of, greenhouse

PLAN = greenhouse()
STREAM = PLAN.local_folds["local_average"].stream


class Crowd:
    """Devices of the greenhouse that publish their values, and the board of a page that shows them.

    Args:
        board: of the page.
        count: of the devices.
        away: the numbers of those that are not connected.
        others: names of further devices.
    """

    def __init__(self, board, count, away=(), others=()):
        self.board, self.view, self.at_s = board, FleetView(Topics("greenhouse"), 5, PLAN), 1_000
        self.began_s, self.history = self.at_s, History()
        self.names = [*(f"pi-{number:03}" for number in range(count)), *others]
        for number, name in enumerate(self.names):
            frame = PresenceFrame(Replica(1, 7, name), 1, online=number not in away)
            self.view.take(topic_of(frame, self.view.topics), frame.encode(), self.at_s)
            self.publish(name)

    def tell(self, topic, **plain):
        self.view.take(topic, json.dumps(plain).encode(), self.at_s)

    def publish(self, name, readings=1, *, settled=False, alarms=()):
        """Let a device publish its entry, its report, and the fleet's value as it has it."""
        topics, steps = self.view.topics, 2_000 + self.names.index(name) % 7
        replica = Replica(1, 7, name)
        entry = entry_of(replica, readings, "local_average", STREAM, (readings, readings * steps))
        self.view.take(topic_of(entry, topics), entry.encode(), self.at_s)
        report = {"refused": 0, "refused_because": {}, "sent_bytes": 9, "alarms": list(alarms)}
        self.tell(topics.agent(name), readings=readings, **report)
        state = {"inputs": f"{readings}", "settled": settled, "devices": len(self.names)}
        self.tell(topics.result("global_average", name), parts={"mean": 22.5}, **state)

    def alert(self, name, device, state="on"):
        topic = self.view.topics.alert(name, device)
        self.tell(topic, state=state, fold="global_average", part="mean", value=28.5, since=None)

    def write(self):
        """Write what a turn of the dashboard writes."""
        session = SimpleNamespace(view=self.view, broker="mqtt://b", trouble=None, connected=True)
        fleet = picture(session, FleetTable.of(session, ""), self.at_s, self.began_s)
        for name, value, settled in numbers(self.view):
            self.history.note(name, value, 1.7e9 + self.at_s, settled=settled)
        self.board.write("fleet", fleet | {"bytes": {"why_not": "-"}})
        self.board.write("history", self.history.plain())
