"""Calling out the turns of alerts: a command, a webhook, in a thread of their own.

The core never waits for either. A call that fails is tried again, after waits that double; then it
is given up, and counted with its reason. Turns are called out one after the other, in the order in
which they came. Only some of them wait here at a time, the others in the store.
"""

import contextlib
import json
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from random import Random

from device_agent.agent.acting.alerts import Turn
from lasp_edge.errors import pass_interrupt

TRIES = 5
"""Times that a call is tried: with waits of 2, 4, 8 and 16 seconds a restart of what it calls is
survived."""
FIRST_WAIT_S = 2.0
"""Seconds before the second try, at most; each later wait is twice as long."""
MOST_QUEUED = 100
"""Turns that wait here, at most; the others wait in the store."""
LONGEST_REASON = 80
"""Characters of what a command or server says of its failure that are kept, at most."""
STOP_S = 2.0
"""Seconds that a stopping agent waits for a call: a turn without an answer is called out again."""


class CallFailedError(Exception):
    """A call did not succeed; the text says why."""


Call = Callable[[bytes], None]
"""Hands JSON on; raises `CallFailedError` where that did not succeed."""


class Command:
    """Calls a command, with JSON on its standard input.

    Args:
        words: the command and its arguments; no shell sees them.
        timeout_s: seconds after which it is killed.
    """

    def __init__(self, words: Sequence[str], timeout_s: float) -> None:
        self.words = list(words)
        self.timeout_s = timeout_s

    def __call__(self, text: bytes) -> None:
        try:
            ended = subprocess.run(  # noqa: S603 - the command that the operator gave
                self.words,
                input=text + b"\n",  # a line for whoever reads lines
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CallFailedError(f"the command took over {self.timeout_s:g} s") from None
        except OSError as error:
            raise CallFailedError(f"the command cannot run: {error.strerror}") from None
        if ended.returncode:
            lines = ended.stderr.decode(errors="replace").strip().splitlines()
            why = f": {lines[-1][:LONGEST_REASON]}" if lines else ""
            raise CallFailedError(f"the command ended with exit code {ended.returncode}{why}")


class Webhook:
    """Posts JSON to a URL.

    Args:
        url: http or https. It is in no message: it may hold a secret.
        timeout_s: seconds after which a server that says nothing has failed.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        self.url = url
        self.timeout_s = timeout_s

    def __call__(self, text: bytes) -> None:
        from urllib import error, request  # noqa: PLC0415 - 3 MB that most agents do without

        posted = request.Request(  # noqa: S310 - its scheme was checked
            self.url, text, {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with request.urlopen(posted, timeout=self.timeout_s) as answer:  # noqa: S310
                answer.read(LONGEST_REASON)
        except error.HTTPError as refused:
            raise CallFailedError(f"the webhook's server answered {refused.code}") from None
        except OSError as trouble:
            reason = getattr(trouble, "reason", trouble)
            why = str(reason)[:LONGEST_REASON]
            raise CallFailedError(f"the webhook cannot be reached: {why}") from None


class Caller:
    """Calls out turns in a thread.

    Args:
        calls: each of them is given every turn.
        jitter: draws how much of a wait is waited.
        first_wait_s: see `FIRST_WAIT_S`.
    """

    def __init__(
        self, calls: Sequence[Call], jitter: Random, *, first_wait_s: float = FIRST_WAIT_S
    ) -> None:
        self._calls, self._jitter, self._first_wait_s = list(calls), jitter, first_wait_s
        self._turns: queue.Queue[Turn | None] = queue.Queue(MOST_QUEUED)
        self._ended: queue.SimpleQueue[tuple[Turn, str]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def offer(self, turn: Turn) -> bool:
        """Take a turn; False where too many wait."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="alerts", daemon=True)
            self._thread.start()
        try:
            self._turns.put_nowait(turn)
        except queue.Full:
            return False
        return True

    def ended(self) -> list[tuple[Turn, str]]:
        """Return the turns that were called out since the last time, with what went wrong."""
        return [self._ended.get() for _ in range(self._ended.qsize())]

    def stop(self) -> None:
        """End; what was not called out yet is so after the next start."""
        self._stopping.set()
        if self._thread is not None:
            with contextlib.suppress(queue.Full):
                self._turns.put_nowait(None)
            self._thread.join(STOP_S)

    def _run(self) -> None:
        while True:
            turn = self._turns.get()
            if turn is None or self._stopping.is_set():
                return
            text = json.dumps(turn.status, sort_keys=True).encode()
            troubles = [self._tried(call, text) for call in self._calls]
            if self._stopping.is_set() and any(troubles):
                return
            self._ended.put((turn, "; ".join(filter(None, troubles))))

    def _tried(self, call: Call, text: bytes) -> str:
        """Call until it succeeds; return "" or, where it was given up, why."""
        trouble = ""
        for tried in range(TRIES):
            if tried:
                wait_s = self._first_wait_s * 2 ** (tried - 1)
                if self._stopping.wait(wait_s * self._jitter.uniform(0.5, 1)):
                    return trouble
            try:
                call(text)
            except CallFailedError as error:
                trouble = str(error)
            except BaseException as error:  # noqa: BLE001 - a bug here may not end the thread
                pass_interrupt(error)
                trouble = f"{type(error).__name__}: {str(error)[:LONGEST_REASON]}"
            else:
                return ""
        return f"{trouble} (tried {TRIES} times, and given up)"
