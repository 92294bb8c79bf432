"""Bugs in what devices do with values: leaving out who is silent, calling handlers, alerting."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from device_agent.agent.acting.alerts import Alerts
from device_agent.agent.acting.records import Records
from device_agent.agent.acting.watch import Watch
from device_agent.agent.fleet.absences import Absences
from lasp_edge.aggregates.absence import PresentFold
from lasp_edge.evaluation.conditions import TriggerState
from simulations.planted.bug import omitted, planted, replaced

_planted = partial(planted, needs="acting")


@planted
def a_note_on_a_silent_device_is_taken_back_at_once() -> Iterator[None]:
    """A dead sensor leaves the mean, is back a second later, and leaves it again, for ever."""
    look = Absences._look  # noqa: SLF001 - a bug is planted from outside

    def looked(self: Absences, name: str, *arguments: Any) -> None:
        known = list(self._stored.get(name, ()))
        for device in known:
            self._take_back(name, device)
        if not known:
            look(self, name, *arguments)

    with replaced(Absences, "_look", looked):
        yield


@planted
def an_alert_ignores_its_hysteresis() -> Iterator[None]:
    """A value swings around a level, and the alert goes on and off each second."""
    step = TriggerState.step

    def stepped(self: TriggerState, trigger: Any, number: Any, time_us: int | None) -> bool:
        if self.fired and not trigger.holds(number, fired=False):
            number = None
        return step(self, trigger, number, time_us)

    with replaced(TriggerState, "step", stepped):
        yield


@planted
def a_handler_is_called_each_time_that_anything_moves() -> Iterator[None]:
    """A handler of a value runs again and again for one and the same `inputs`."""
    moved = Watch.moved

    def all_moved(self: Watch) -> Iterator[tuple[str, bool]]:
        yield from moved(self)
        if self.watched.trigger is None:
            yield from [(key, True) for key in sorted(self._seen)]

    def forgotten(self: Records, identity: str, key: str) -> None:
        del self, identity, key

    with replaced(Watch, "moved", all_moved), replaced(Records, "get", forgotten):
        yield


for _name, _history, _owner, _method, _says in (
    (
        "a_silent_device_is_never_noted",
        "A dead sensor counts in the fleet's mean for ever.",
        Absences,
        "_note",
        None,
    ),
    (
        "beats_tell_nothing_of_who_is_there",
        "A device that measures nothing new is left out, though it beats.",
        Absences,
        "_hear_beat",
        None,
    ),
    (
        "notes_on_silent_devices_change_no_value",
        "A dead sensor is noted, and counts all the same.",
        PresentFold,
        "absent",
        (),
    ),
):
    omitted(_name, _history, _owner, _method, _says)


@planted
def an_alert_that_turns_is_published_at_a_new_connection_only() -> Iterator[None]:
    """A value passes its level, and nobody hears of it until the network breaks."""

    def say(self: Alerts, name: str, key: str, state: dict[str, Any]) -> None:
        self._statuses[name, key] = state
        self._gone.pop((name, key), None)

    with replaced(Alerts, "_say", say):
        yield


@_planted
def a_turn_that_is_not_called_out_yet_is_lost_with_the_next() -> Iterator[None]:
    """A webhook is slow, an alert turns twice meanwhile, and nobody is called for the first."""
    record = Alerts._record  # noqa: SLF001 - a bug is planted from outside

    def recorded(self: Alerts, name: str, key: str) -> dict[str, Any]:
        return record(self, name, key) | {"waiting": []}

    with replaced(Alerts, "_record", recorded):
        yield
