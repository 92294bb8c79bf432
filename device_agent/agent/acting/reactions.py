"""Handlers of values: run at most once an interval and key, and never twice for one `inputs`.

That a handler ran, and for which `inputs`, is stored in the transaction that holds its updates. So
after a crash both are there, or neither, and then it runs again.
"""

from typing import NamedTuple

from device_agent.agent.acting.current import CurrentValues
from device_agent.agent.acting.records import Records
from device_agent.agent.acting.watch import Watch
from device_agent.agent.agent import Agent
from device_agent.agent.parts import Part
from device_agent.agent.variables.variables import PendingUpdates, Variables
from lasp_edge.evaluation.conditions import TriggerState
from lasp_edge.language.updates import Update
from lasp_edge.timers import Timer, is_time
from lasp_edge.units import SECOND_US

LOOK_US = SECOND_US
"""Microseconds between two looks at the values, at least."""
MOST_GONE = 1_000
"""Keys without a value that are remembered of a handler, at most: of those that went last it is
known for which `inputs` it ran, should they come back."""


class Called(NamedTuple):
    """What is remembered of a handler and a key.

    Attributes:
        inputs: for which it last ran; "" before the first time.
        called_us: when that was.
        fired: its condition has fired and is not armed again.
        owed: it is to run for that, once its interval is over.
    """

    inputs: str = ""
    called_us: int = 0
    fired: bool = False
    owed: bool = False


class ValueReactions(Part):
    """Runs the program's handlers of values.

    Args:
        agent: what all parts share.
        values: what each fold is worth.
        variables: what handlers change.
        records: what is remembered.
    """

    name = "value reactions"

    def __init__(
        self, agent: Agent, values: CurrentValues, variables: Variables, records: Records
    ) -> None:
        self._agent, self._values = agent, values
        self._variables, self._records = variables, records
        self._watches = [Watch(values, watched) for watched in agent.plan.reactions]
        self._timer = Timer(LOOK_US)
        for watch in self._watches:
            for key, record in records.of(watch.watched.identity):
                watch.states[key] = TriggerState(fired=Called(*record).fired)

    def tick(self, now_us: int) -> None:
        """Look at what moved, and run the handlers that are due."""
        if not self._watches or not self._timer.is_due(now_us):
            return
        for index, watch in enumerate(self._watches):
            some_went = False
            for key, has_value in watch.moved():
                if not has_value:
                    self._leave(watch, key)
                    some_went = True
                    continue
                try:
                    self._look(index, key, now_us)
                except BaseException as error:  # noqa: BLE001 - a user's fold may raise anything
                    self._agent.guard.failed(f"fold {watch.watched.variable}", error)
            if some_went:
                self._records.forget_others(watch.watched.identity, watch.keys, MOST_GONE)

    def _leave(self, watch: Watch, key: str) -> None:
        """Note that a key has no value any more: it may come back with the inputs that it had."""
        identity = watch.watched.identity
        before = Called(*(self._records.get(identity, key) or ()))
        after = self._armed(watch, before)._replace(owed=False)
        if after != before:
            self._records.put(identity, key, None)  # it went last
            self._records.put(identity, key, list(after) if after.inputs else None)

    def _armed(self, watch: Watch, called: Called) -> Called:
        """Return how a condition stands that may fire again."""
        name = watch.watched.variable
        if watch.watched.trigger is not None and name in self._agent.plan.local_folds:
            called = called._replace(inputs="")  # a device's own value may come back
        return called._replace(fired=False)

    def _look(self, index: int, key: str, now_us: int) -> None:
        watch, clock = self._watches[index], self._agent.clock
        identity = watch.watched.identity
        before = Called(*(self._records.get(identity, key) or ()))
        time_us = clock.time_us(now_us)
        called = self._judged(watch, key, before, time_us if clock.trusted else None)
        every_us = watch.watched.every_us
        every_us = self._agent.settings.interval_us if every_us is None else every_us
        if called.owed:
            if is_time(time_us, called.called_us + every_us, every_us):
                self._call(index, key, now_us)
                inputs = self._values.inputs(watch.watched.variable, key)
                called = Called(inputs, time_us, called.fired)
            else:
                watch.waiting.add(key)
        if watch.watched.trigger is None and not called.owed:
            watch.waiting.discard(key)
        if called != before and (called._replace(owed=False) != before or called.fired):
            self._records.put(identity, key, list(called))

    def _judged(self, watch: Watch, key: str, before: Called, time_us: int | None) -> Called:
        """Return how it stands with the value that a key has now, before any call."""
        name = watch.watched.variable
        inputs = self._values.inputs(name, key)
        if watch.watched.trigger is None:
            is_new = bool(before.inputs) or not self._values.is_nothing(name, key)
            return before._replace(owed=is_new and inputs != before.inputs)
        turned = watch.step(key, has_value=True, time_us=time_us)
        fired = watch.states[key].fired
        if turned and not fired:
            before = self._armed(watch, before)
        owed = fired and (turned or before.owed) and inputs != before.inputs
        return before._replace(fired=fired, owed=owed)

    def _call(self, index: int, key: str, now_us: int) -> None:
        """Run a handler; what it changes is taken whole, or not at all."""
        watched, plan = self._watches[index].watched, self._agent.plan
        try:
            value = self._values.value(watched.variable, key, watched.part)
            update = Update(plan, value=value, value_of=self._values.known)
            pending = PendingUpdates()
            plan.functions.reacting[index](value, update)
            self._variables.apply(update.changes, pending)
        except BaseException as error:  # noqa: BLE001 - a user's function may raise anything
            self._agent.guard.failed(f"on_value of {watched.variable}", error)
        else:
            self._variables.record(pending, self._agent.clock.time_us(now_us))
