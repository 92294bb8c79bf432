"""The texts of a program's functions when their versions were new, remembered in a file.

The file is JSON and meant to be committed beside the program: program -> function -> version ->
digest of the text. A version keeps the digest that it was first seen with, so a changed text is
reported whether its version stayed or went back to an old number.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lasp_edge.checking.texts import FunctionText
from lasp_edge.errors import UsageError

DEFAULT = ".lasp-edge-check.json"

Digests = dict[str, dict[str, str]]
"""Function -> version -> digest."""


def read(path: Path) -> dict[str, Digests]:
    """Return the digests of a file, by program; nothing where there is no file.

    Raises:
        UsageError: it is not such a file.
    """
    try:
        programs = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise UsageError(f"--record {path}: it cannot be read: {error}") from None
    if not _is_record(programs, depth=3):
        raise UsageError(f"--record {path}: it was not written by `check`")
    found: dict[str, Digests] = programs
    return found


def _is_record(plain: Any, depth: int) -> bool:
    """Return whether `plain` is text below `depth` levels of names."""
    if not depth:
        return isinstance(plain, str)
    return isinstance(plain, dict) and all(_is_record(each, depth - 1) for each in plain.values())


def changed(texts: Iterable[FunctionText], known: Digests) -> list[FunctionText]:
    """Return the functions whose text is not that which their version was first seen with."""
    return [
        text
        for text in texts
        if known.get(text.name, {}).get(text.version, text.digest) != text.digest
    ]


def remembered(texts: Iterable[FunctionText], known: Digests, *, accept: bool) -> Digests:
    """Return the digests to remember now.

    Args:
        texts: of the functions that the program has; those of others are forgotten.
        known: those remembered.
        accept: take the new text of a changed function as the meaning of its version.
    """
    digests: Digests = {}
    for text in texts:
        versions = dict(known.get(text.name, {}))
        if accept:
            versions[text.version] = text.digest
        versions.setdefault(text.version, text.digest)
        digests[text.name] = versions
    return digests


def write(path: Path, programs: dict[str, Digests]) -> None:
    """Write the file, the same bytes for the same content.

    Raises:
        UsageError: it cannot be written.
    """
    text = json.dumps(programs, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"--record {path}: {error.strerror}; use --no-record to do without it"
        ) from None
