"""A small process, without OpenSSL and HTTP: they take some 6 MiB of a small device's memory.

An agent whose broker is reached without TLS does not use them, but `hashlib` and paho import them.
So the command starts itself again, as this module and in the same process, before it imports what
an agent needs, and keeps them out while the agent's own modules are imported: paho finds a module
`ssl` with only the names of the errors that it looks for, and, unless the environment names a proxy
for MQTT, neither PySocks nor `urllib.request`, which it uses for proxies alone. Then all are let in
again: a user's program that imports them gets them, and pays for them.

Some other modules, 2 MiB with what they import, are imported by Python's own and by paho for what
an agent seldom does. They are put off: each is run at the first use of a name in it. Of two of them
an agent uses one name, and has it without the module: SHA-256 is the interpreter's own, not that of
OpenSSL. From Python 3.12 on that keeps out less, as each dataclass uses `inspect`.

The link has a thread of its own, and glibc gives each thread an arena of its own: what one of them
gives back the other cannot use, 1 MiB after a day's replay. So a small process has one arena, and
gives memory back in smaller pieces, unless the environment says otherwise.
"""

import contextlib
import os
import signal
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from device_agent.console.start import end_quietly, raise_interrupts

_SMALL_HEAP = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "MALLOC_TOP_PAD_": "16384",
}
"""Settings of glibc, in bytes but for the arenas; other C libraries do not read them."""
_SECURED = {"LASP_EDGE_AGENT_BROKER": "mqtts"}
"""Keeps a process from starting again as a small one."""
_SELDOM = ("ast", "base64", "inspect", "ipaddress", "selectors", "traceback", "uuid")
"""What the command line, `dataclasses`, `logging`, `socket`, `urllib.parse` and paho import for the
overview of commands, classes without a docstring, errors, files that are sent, addresses in
brackets, and (paho) WebSockets and a client without an id."""
_SHA_256 = "_sha2" if sys.version_info >= (3, 12) else "_sha256"
_NAMES = ("SSLError", "SSLWantReadError", "SSLWantWriteError", "CertificateError")


def is_small() -> bool:
    """Return whether this process was started without OpenSSL."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == "device_agent.console.small_process"


def begin_small() -> None:
    """Start again where no TLS is to be expected: what an agent imports is so imported once.

    Only the options and the file, once they are understood, say for sure: see `become_fitting`.
    """
    texts = _texts() if sys.argv[1:2] == ["agent"] and not is_small() else ""
    if "mqtt://" in texts and "mqtts" not in texts:
        become_fitting(secured=False)


def become_fitting(*, secured: bool) -> None:
    """Start `lasp-edge agent ...` again in this process: small, unless its broker wants TLS.

    Nothing happens where it is as it should be, or where this is no such command.
    """
    as_command = sys.argv[1:2] == ["agent"] and sys.executable and os.name == "posix"
    if not as_command or is_small() is not secured:
        return
    sys.stdout.flush()
    module = "lasp_edge" if secured else "device_agent.console.small_process"
    line = [sys.executable, "-P", "-m", module, *sys.argv[1:]]
    environment = _SECURED | os.environ if secured else _SMALL_HEAP | os.environ
    if not secured:
        # Ctrl-C waits until the new process can take it: Python would print where it began.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.execve(sys.executable, line, environment)  # noqa: S606 - this interpreter, these words


def _texts() -> str:
    """Return all texts that may name the broker: words, variables, and a file of options."""
    from pathlib import Path  # noqa: PLC0415 - brings `ipaddress`, and a small process does without

    texts = [*sys.argv[1:], *os.environ.values()]
    for word, following in zip(sys.argv[1:], [*sys.argv[2:], ""], strict=True):
        option, _, value = word.partition("=")
        if option == "--config":
            with contextlib.suppress(OSError):
                texts.append(Path(value or following).read_text(errors="replace"))
    return "\n".join(texts).lower()


def _keep_out() -> None:
    named = ModuleType("ssl", "Stands in for a module that this process does without.")
    for name in _NAMES:
        setattr(named, name, type(name, (OSError,), {}))
    named.SSLSocket = type("SSLSocket", (), {})  # type: ignore[attr-defined]
    sys.modules["ssl"] = named
    if "mqtt_proxy" not in map(str.lower, os.environ):
        sys.modules["urllib.request"] = ModuleType("urllib.request")
        sys.modules["socks"] = None  # type: ignore[assignment]  # Python takes it for "not there"


def _put_off(name: str, **at_hand: Any) -> None:
    """Have a module imported when somebody first takes another name from it than those at hand."""
    if name in sys.modules:
        return
    stand_in = ModuleType(name, "Stands for a module until it is used.")
    vars(stand_in).update(at_hand)

    def become_it(wanted: str) -> Any:
        if wanted == "__path__":  # Each `from ... import` asks whether it is a package.
            raise AttributeError(wanted)
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        vars(stand_in).update(vars(import_module(name)))
        vars(stand_in).pop("__getattr__", None)
        return getattr(stand_in, wanted)

    vars(stand_in)["__getattr__"] = become_it
    sys.modules[name] = stand_in


def _let_in() -> None:
    """Forget what was imported without OpenSSL, but for paho: the next import finds the real."""
    named = sys.modules.pop("ssl")
    for name in ("socks", "urllib.request"):
        sys.modules.pop(name, None)
    for name, module in list(sys.modules.items()):
        if getattr(module, "__dict__", {}).get("ssl") is named and not name.startswith("paho."):
            del sys.modules[name]


if __name__ == "__main__":
    end_quietly()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _keep_out()
    for _name in _SELDOM:
        _put_off(_name)
    _put_off("hashlib", sha256=import_module(_SHA_256).sha256)
    _put_off("platform", system=lambda: os.uname().sysname)
    from lasp_edge.tool.command_line import run_command

    import_module("device_agent.console.command.run_agent")
    _let_in()
    raise_interrupts()
    sys.exit(run_command("agent", "device_agent.console.command.agent", sys.argv[2:]))
