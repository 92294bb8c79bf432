"""A gateway's core under test: steps over landing rows that are given, as a lake under test has."""

from collections import defaultdict

from crdts import Frontier, Member, Membership, Replica, Version
from crdts.frontier import Promise
from device_agent.gateway.core import GatewayCore, WaitingTerms
from lasp_edge.protocol.acceptance import Acceptance, Accepted, PaneRows
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.protocol.frames import EVERY_WINDOW
from lasp_edge.protocol.frontier import Listening
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.topics import Topics
from simulations.world.keeper import SimulatedKeeper

SENDER = Replica(1, 77, "gateway")
TERMS = WaitingTerms(roster=["pi-0"])


class GatewayUnderTest:
    """A core over a keeper, which may be restarted.

    Args:
        plan: of the program.
        keeper: keeps its state; plain tables if none is given.
        terms: for whom windows wait.
        store: the id of what it keeps; another one after a disk was lost.
    """

    def __init__(self, plan, keeper=None, terms=TERMS, store="store-1"):
        self.plan, self.terms, self.store = plan, terms, store
        self.keeper = keeper or SimulatedKeeper()
        self.rows = []
        self.restart()

    def restart(self):
        """Begin a process: what the one before held in memory is gone."""
        self.acceptance = Acceptance(
            self.plan.sent_streams,
            self.plan.published_folds.values(),
            Topics(self.plan.name),
            ("gateway", self.store),
            overheard=Overheard({}),
        )
        self.core = GatewayCore(self.plan, self.acceptance, self.keeper, SENDER, self.terms)

    def step(self, rows):
        """Take one batch of landing rows, and return the turn."""
        accepted, listening = accepted_of(self.plan, rows)
        turn = self.core.join(accepted, listening)
        self.keeper.commit(turn.changes)
        self.rows += turn.changes.rows
        return turn

    def current(self):
        """Return (window, key, start) -> (partial, devices in) of the current rows."""
        return {tuple(row.at): (row.partial, row.devices_in) for row in self.rows}

    def revisions(self, window, start_us, key=""):
        """Return all rows of one window."""
        return [row for row in self.rows if row.at == (window, key, start_us)]

    def statuses(self):
        """Return (window, key, start) -> its statuses, by revisions that count without a gap."""
        found = defaultdict(list)
        for row in self.rows:
            assert row.revision == len(found[row.at])
            found[row.at].append(row.status)
        return found


def stated_beside(promise, rows):
    """Return what a promise states, by itself and the rows of its version."""
    at = ("device", "incarnation", "nonce", "seq")
    same = [each for each in rows if [*map(each.get, at)] == [*map(promise.get, at)]]
    begun = [(each["stream"], each["since_us"]) for each in same if each["kind"] == "begun"]
    since_us = promise.get("since_us")
    return (*begun, *(() if since_us is None else [(EVERY_WINDOW, since_us)]))


def accepted_of(plan, rows):
    """Return what a lander would have accepted for these rows to land, and the clock's tick."""
    accepted, listening = Accepted(), None
    folds = {each.stream: each for each in plan.sent_streams}
    for row in rows:
        version = Version(row["incarnation"], row["nonce"], row["seq"])
        if row["kind"] == "pane":
            window = folds[row["stream"]]
            columns = tuple((row[name],) for name in window.fold.columns_named)
            at = (row["stream"], window.span_us, *version[:2], columns, (row["key"],))
            block = PaneEntries(*at, (row["pane_us"],), (row["seq"],))
            accepted.rows.append(PaneRows(row["device"], block, row["received_us"]))
        elif row["kind"] == "promise":
            promise = Promise(version, row["low_us"], bool(row["done"]), row["received_us"])
            accepted.promises |= Frontier({row["device"]: promise})
            accepted.begun[row["device"]] = stated_beside(row, rows)
        elif row["kind"] == "member":
            member = Member(row["control"], row["retired"], version)
            accepted.commands |= CommandLog(Membership({row["device"]: member}))
            if row.get("low_us") is not None:
                accepted.owed_us[row["device"]] = row["low_us"]
        elif row["kind"] == "tick":
            listening = max(listening or Listening(0, 0), Listening(row["now_us"], row["since_us"]))
    return accepted, listening
