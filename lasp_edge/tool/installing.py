"""The command that installs an extra of the package.

The package is on no index of its own, so the line names the place that it was installed from, which
pip keeps beside it (`direct_url.json`), and the Python that runs.

Source: Python Packaging Authority, "Recording the Direct URL Origin of installed distributions"
(PEP 610), https://packaging.python.org/en/latest/specifications/direct-url/.
"""

import json
import sys
from typing import Any
from urllib.parse import unquote, urlsplit

NAME = "lasp-edge"


def install_line(extra: str) -> str:
    """Return the command that installs the package once more, with an extra such as `cloud`."""
    origin = _origin()
    wanted = f"{NAME}[{extra}]"
    if origin.get("dir_info", {}).get("editable"):
        wanted = f"-e '{_path(origin)}[{extra}]'"
    elif "dir_info" in origin:
        wanted = f"'{_path(origin)}[{extra}]'"
    elif "url" in origin:
        wanted = f"'{wanted} @ {origin['url']}'"
    else:
        wanted = f"'{wanted}'"
    return f"{sys.executable} -m pip install {wanted}"


def _origin() -> dict[str, Any]:
    """Return the record of the installation by pip; empty without one."""
    from importlib import metadata  # noqa: PLC0415 - an agent does without

    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        text = None
    origin: dict[str, Any] = json.loads(text) if text else {}
    return origin


def _path(origin: dict[str, Any]) -> str:
    return unquote(urlsplit(origin["url"]).path)
