"""Where downloads and the driver's class archive are kept: one folder, safe to delete."""

import os
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the cache folder: `LASP_EDGE_CACHE`, else `lasp-edge` among the user's caches.

    >>> cache_folder({"XDG_CACHE_HOME": "/caches"}).as_posix()
    '/caches/lasp-edge'
    """
    if chosen := environ.get("LASP_EDGE_CACHE"):
        return Path(chosen).absolute()
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lasp-edge"
