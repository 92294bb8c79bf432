"""Replies: what a sink owes the devices once their entries are safe, kept until it could be sent.

A sink (`lasp_edge.protocol.sinks`) commits first, and only then owes anybody a word: devices the
acknowledgement of their pane entries, whoever sent a hello the known state of it, and a life that
is over the hint to ask. It greets devices that send no panes (`greetings`), and repeats what
operators commanded, should the broker forget it. Without a broker it is sent later.
"""

from collections.abc import Callable
from typing import Final

from crdts import Replica
from lasp_edge.protocol.acceptance import Acceptance, Accepted
from lasp_edge.protocol.acks import Answer, FormerStore
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.fencing import HelloFrame, VouchFrame
from lasp_edge.protocol.greetings import Greetings
from lasp_edge.units import SECOND_US

DEVICES_AWAITING: Final = 100_000
"""Devices whose acknowledgements wait for the broker at most: the greatest fleet ten times. Beyond
that the oldest wait in vain and their devices resend."""

Publish = Callable[[Frame], bool]
"""Sends a frame on its topic, or returns False: then it is offered again."""


class Replies:
    """The answers that a sink owes.

    Args:
        acceptance: of the sink's messages.
        sender: the sink's process, as the devices see it.
        former: the stores from which the sink's one follows.

    Attributes:
        landed: the number of the lake's commit by which its lander landed last; 0 of another sink.
        acknowledged: device -> `landed` of the last frame by which an entry was acknowledged.
    """

    def __init__(
        self, acceptance: Acceptance, sender: Replica, former: tuple[FormerStore, ...] = ()
    ) -> None:
        self._acceptance, self._sender, self._former = acceptance, sender, former
        self._name_store: set[str] = set()
        self._commit, self.landed = 1, 0
        self.acknowledged: dict[str, int] = {}
        self._answers: dict[str, Answer] = {}
        self._hellos: dict[tuple[str, str], HelloFrame] = {}
        self._overtaken: set[str] = set()
        self._greetings = Greetings()
        self._vouches_sent = 0

    def owe(self, accepted: Accepted, now_us: int, commit: int = 1) -> None:
        """Take what is owed for messages whose rows are durable with a commit, counted from 1."""
        self._commit = commit
        self._hellos |= accepted.hellos
        self._overtaken |= accepted.overtaken
        for device, answer in accepted.answers.items():
            self._answers.setdefault(device, Answer()).add(answer)
            self._greetings.acknowledged(device, now_us)
        for device in sorted(accepted.known - accepted.heard.keys()):
            if self._greetings.is_first(device):  # it sends few beats on its own
                self._answers.setdefault(device, Answer())
        for device, is_ours in accepted.heard.items():
            (self._name_store.add if is_ours else self._name_store.discard)(device)
            if self._greetings.is_due(device, is_ours, now_us):
                self._answers.setdefault(device, Answer())
        for _, about in accepted.hellos:  # it may be on an older card, which knows a former store
            self._name_store.discard(about)  # also if a beat came in the same turn
        while len(self._answers) > DEVICES_AWAITING:  # they send again, and are answered then
            del self._answers[next(iter(self._answers))]

    def answer(self, publish: Publish, now_us: int) -> None:
        """Send what is owed, as far as it can be sent."""
        self._acknowledge(publish, now_us)
        self._vouch(publish)

    def remind(self, publish: Publish, now_us: int, *, is_connected: bool) -> None:
        """Repeat commands that nobody repeated for long, and ask for missing parts of variables.

        Args:
            publish: sends a frame.
            now_us: the sink's clock.
            is_connected: else a command would be lost, and count as sent.
        """
        if is_connected:
            for command in self._acceptance.repeated(self._sender, now_us):
                publish(command)
        for ask in self._acceptance.overheard.asks(self._sender, now_us):
            publish(ask)  # one that is lost comes again

    def _acknowledge(self, publish: Publish, now_us: int) -> None:
        for device, answer in list(self._answers.items()):
            given = (self._sender, self._commit, device, self._acceptance.sink)
            former = () if device in self._name_store else self._former
            control = self._acceptance.control
            known = 0 if control is None else control.control
            rest = (now_us // SECOND_US, known, former, self.landed)
            for frame in answer.frames(*given, *rest):
                if not publish(frame):
                    return
                if frame.taken:
                    self.acknowledged[device] = self.landed
            del self._answers[device]

    def _vouch(self, publish: Publish) -> None:
        """Answer hellos with the known state of a device; hint lives that are over to ask."""
        for at, hello in list(self._hellos.items()):
            number = self._vouches_sent + 1
            if not self._send(publish, self._acceptance.witness.vouch(self._sender, number, hello)):
                return
            del self._hellos[at]
        for device in sorted(self._overtaken):
            number = self._vouches_sent + 1
            if not self._send(publish, VouchFrame.hint(self._sender, number, device)):
                return
            self._overtaken.discard(device)

    def _send(self, publish: Publish, vouch: VouchFrame) -> bool:
        sent = publish(vouch)
        self._vouches_sent += sent
        return sent
