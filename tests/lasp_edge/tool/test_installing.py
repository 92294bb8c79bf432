"""The line that installs an extra names what is really there."""

import json
import sys
from importlib import metadata

import pytest

from lasp_edge.tool.installing import install_line

FOLDER = "file:///home/pi/my%20fleet"


class Installed:
    def __init__(self, text):
        self._text = text

    def read_text(self, name):
        assert name == "direct_url.json"
        return self._text


@pytest.mark.parametrize(
    ("origin", "asked"),
    [
        ({"url": FOLDER, "dir_info": {"editable": True}}, "-e '/home/pi/my fleet[cloud]'"),
        ({"url": FOLDER, "dir_info": {}}, "'/home/pi/my fleet[cloud]'"),
        (
            {"url": "https://example.org/lasp_edge-0.1.0-py3-none-any.whl", "archive_info": {}},
            "'lasp-edge[cloud] @ https://example.org/lasp_edge-0.1.0-py3-none-any.whl'",
        ),
        (None, "'lasp-edge[cloud]'"),
    ],
    ids=["editable", "folder", "wheel", "index"],
)
def test_an_extra_comes_from_where_the_package_came_from(monkeypatch, origin, asked):
    text = origin and json.dumps(origin)
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed(text))
    assert install_line("cloud") == f"{sys.executable} -m pip install {asked}"


def test_a_package_that_was_never_installed_has_a_line_too(monkeypatch):
    def absent(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert install_line("demo") == f"{sys.executable} -m pip install 'lasp-edge[demo]'"
