"""The scans that a lake's job cannot go on with, which it notes in a file of the lake.

Only the job knows where a scan with local events stands: the tables hold no question. It renews the
file where its line changes, and `lasp-edge lake status` reads it.
"""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cloud_tier.lake.tables import LakeTables

HELD: Final = "job.held"
"""The file, in the lake's directory."""


def note_held(tables: LakeTables, words: Sequence[str]) -> None:
    """Note what the job prints of them; in an object store, or where nothing can be written, not.

    Args:
        tables: of the lake.
        words: a text for each scan.
    """
    if not tables.is_local:
        return
    with contextlib.suppress(OSError):
        path = Path(tables.root, HELD)
        path.write_text(json.dumps(list(words))) if words else path.unlink(missing_ok=True)


def noted_held(tables: LakeTables) -> list[str]:
    """Return what the job noted last; nothing where that is not known."""
    if not tables.is_local:
        return []
    try:
        return list(map(str, json.loads(Path(tables.root, HELD).read_text())))
    except (OSError, ValueError, TypeError):  # none, or cut short
        return []
