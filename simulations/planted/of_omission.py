"""Bugs of omission: a method does nothing, or says the same whatever it is asked."""

from typing import Any

from device_agent.agent.changes import Changes
from device_agent.agent.fleet.commands import OperatorCommands
from device_agent.agent.fleet.peers import Peers
from device_agent.agent.intake.identities import Block, Identities
from device_agent.agent.panes.cache import PaneCache
from device_agent.agent.panes.delivery import PaneDelivery
from device_agent.agent.panes.sinks import Sinks
from device_agent.agent.panes.unlanded import Unlanded
from device_agent.agent.state.store import Store
from device_agent.agent.variables.published_fold import PublishedFold
from simulations.planted.bug import omitted

ROWS: tuple[tuple[str, str, type, str, Any], ...] = (
    (
        "a_promise_does_not_wait_for_acknowledgements",
        "A device promises that nothing older comes, and then sends what had not landed.",
        PaneCache,
        "oldest_dirty_us",
        None,
    ),
    (
        "done_does_not_wait_for_acknowledgements",
        "`--exit-when-done` ends an agent whose last panes nobody has.",
        PaneCache,
        "all_landed",
        True,
    ),
    (
        "nothing_is_sent_again_at_a_new_connection",
        "The broker lost what was in flight: for minutes nobody sends it.",
        PaneDelivery,
        "connected",
        None,
    ),
    (
        "another_lake_is_not_noticed",
        "The lake is lost: what the former one had is never sent to the new one.",
        Sinks,
        "_make_dirty",
        None,
    ),
    (
        "another_lake_gets_only_what_is_in_memory",
        "The lake is lost after a restart: clean entries of the store are not sent to the new one.",
        Changes,
        "make_dirty",
        None,
    ),
    (
        "a_late_reading_leaves_the_promise_as_it_is",
        "A reading comes behind what its source had said, and is promised before it has landed.",
        Unlanded,
        "came",
        None,
    ),
    (
        "identities_are_not_stored",
        "An agent restarts, and a line that stands in its file twice is counted twice.",
        Identities,
        "take_changed",
        {},
    ),
    (
        "identities_are_not_recalled",
        "An agent restarts, and does not ask the store which readings of a block it knows.",
        Store,
        "identities",
        None,
    ),
    (
        "readings_are_never_known",
        "A file holds a line twice, and it counts twice.",
        Block,
        "holds",
        False,
    ),
    (
        "settled_whatever_others_report",
        "A peer holds something else, and `settled` is said.",
        Peers,
        "agreement",
        (True, ()),
    ),
    (
        "a_former_life_keeps_its_entry",
        "An agent restarts, and goes on publishing under the version of its former life.",
        PublishedFold,
        "succeed",
        None,
    ),
    (
        "commands_are_not_taken",
        "An operator retires a device, and the others count it on.",
        OperatorCommands,
        "_receive",
        None,
    ),
)
"""Name, history, class, its method or property, and what that says."""

for row in ROWS:
    omitted(*row)
