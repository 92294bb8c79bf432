"""A process without OpenSSL: its library alone takes some 5 MiB of a small device's memory.

An agent whose broker is reached without TLS has no use for it, but `hashlib` and paho import it
where it is there. So the command starts itself once more, as this module and in the same process,
and keeps OpenSSL out while the agent's own modules are imported: `hashlib` then takes the
interpreter's own SHA-256, and paho finds a module `ssl` that knows only the names of the errors
that it looks for. Then OpenSSL is let in again: a user's program that wants it gets it, and pays.
"""

import os
import sys
from importlib import import_module
from types import ModuleType

_NAMES = ("SSLError", "SSLWantReadError", "SSLWantWriteError", "CertificateError")


def is_lean() -> bool:
    """Return whether this process was started without OpenSSL."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name == "device_agent.lean"


def become_lean() -> None:
    """Start `lasp-edge agent ...` again in this process, unless it is lean or no such command."""
    as_command = sys.argv[1:2] == ["agent"] and sys.executable and os.name == "posix"
    if as_command and not is_lean():
        sys.stdout.flush()
        line = [sys.executable, "-P", "-m", "device_agent.lean", *sys.argv[1:]]
        os.execv(sys.executable, line)  # noqa: S606 - this interpreter, these very words


def _keep_out() -> None:
    named = ModuleType("ssl", "Stands in for a module that this process does without.")
    for name in _NAMES:
        setattr(named, name, type(name, (OSError,), {}))
    named.SSLSocket = type("SSLSocket", (), {})  # type: ignore[attr-defined]
    sys.modules["ssl"] = named
    sys.modules["_hashlib"] = None  # type: ignore[assignment]  # what Python takes for "not there"


def _let_in() -> None:
    """Forget what was imported without OpenSSL, but for paho: the next import finds the real."""
    named = sys.modules.pop("ssl")
    for name in ("_hashlib", "hashlib"):
        sys.modules.pop(name, None)
    for name, module in list(sys.modules.items()):
        if getattr(module, "ssl", None) is named and not name.startswith("paho."):
            del sys.modules[name]


if __name__ == "__main__":
    _keep_out()
    from lasp_edge.tool.command_line import main

    import_module("device_agent.command.agent")
    _let_in()
    sys.exit(main())
