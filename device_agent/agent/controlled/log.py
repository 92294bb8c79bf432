"""What operators said of parameters, as this device knows it; it repeats that, so none is lost."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from crdts import ControlLog
from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes
from device_agent.agent.facts import Facts
from device_agent.agent.fleet.commands import OperatorCommands
from lasp_edge.protocol.control import MOST_PLACES, ControlFrame
from lasp_edge.protocol.limits import MEMBERS

_BETWEEN: Final = "\x1f"


class ParameterLog(OperatorCommands[ControlLog]):
    """The fleet's log of parameters as a device holds it.

    Args:
        agent: what all parts share.
        tell: are given the log, now and whenever it changes.
    """

    name = "control"
    frame_kind = ControlFrame

    def __init__(self, agent: Agent, tell: Iterable[Callable[[ControlLog], None]]) -> None:
        # What was said of parameters that a former program had is said of nothing any more: who
        # comes new does not take it, and all have to know the same.
        known = (agent.facts.control or ControlLog()).of_parameters(agent.plan.parameters)
        super().__init__(agent, known, jitter=2)
        self._tell, self._changed = tuple(tell), False
        self._say()

    @property
    def subjects(self) -> Iterable[str]:
        return [_BETWEEN.join(lane) for lane in self.known.lanes()]

    def subject_of(self, frame: ControlFrame) -> str:
        return _BETWEEN.join((frame.about, frame.scope))

    def said_by(self, frame: ControlFrame) -> ControlLog:
        return frame.log()

    def known_of(self, subject: str) -> ControlLog:
        parameter, _, scope = subject.partition(_BETWEEN)
        return self.known.of(parameter, scope)

    def frame_of(self, number: int, subject: str) -> ControlFrame:
        parameter, _, scope = subject.partition(_BETWEEN)
        return ControlFrame.of(self._agent.replica, number, parameter, scope, self.known)

    def refusal_of(self, frame: ControlFrame) -> str | None:
        if frame.about not in self._agent.plan.parameters:
            return "control: the program has no such parameter"
        lane = self.known.of(frame.about, frame.scope)
        if not lane.entries and len(self.known.lanes()) >= MEMBERS:
            return "control: too many devices"
        if len((lane | frame.log()).entries) > MOST_PLACES:
            return "control: too many places"
        return None

    def heard_of(self, subject: str) -> None:
        del subject
        self._changed = True
        self._say()

    def _say(self) -> None:
        known = self.known
        self._agent.control = known.fingerprint() if known.entries else 0
        for tell in self._tell:
            tell(known)

    def take_changes(self) -> Changes | None:
        if not self._changed:
            return None
        self._changed = False
        return Changes(facts=Facts(control=self.known.copy()))

    def report(self) -> dict[str, Any]:
        return {"control": self._agent.control}
