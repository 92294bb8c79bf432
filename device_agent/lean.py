"""A process without OpenSSL: its library alone takes some 5 MiB of a small device's memory.

An agent whose broker is reached without TLS has no use for it, but `hashlib` and paho import it
where it is there. So the command starts itself once more, as this module and in the same process,
and keeps OpenSSL out before anything is imported: `hashlib` then takes the interpreter's own
SHA-256, and paho finds a module `ssl` that knows only the names of the errors that it looks for.
"""

import os
import sys
from types import ModuleType

_NAMES = ("SSLError", "SSLWantReadError", "SSLWantWriteError", "CertificateError")


def is_lean() -> bool:
    """Return whether OpenSSL is kept out of this process."""
    return "_hashlib" in sys.modules and sys.modules["_hashlib"] is None


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


if __name__ == "__main__":
    _keep_out()
    from lasp_edge.command_line import main

    sys.exit(main())
