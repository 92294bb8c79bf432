"""The form in which `lasp-edge` is typed, so that a proposed command works as it stands."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def typed_in(folder: Path) -> str:
    """Return the words for `lasp-edge` of this very Python in a folder."""
    script = Path(sys.executable).with_name("lasp-edge")
    if not script.exists():
        return shlex.join([sys.executable, "-m", "lasp_edge"])
    found = shutil.which("lasp-edge")
    if found is not None and Path(found).samefile(script):
        return "lasp-edge"
    short = os.path.relpath(script, folder)
    return shlex.quote(short if len(short) < len(str(script)) else str(script))
