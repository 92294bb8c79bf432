"""The picture of the dashboard in README.md can be made again."""

import sys

import pytest

from simulations import picture
from tests.device_agent.console.dashboard.support_browser import chromium


@pytest.mark.slow
@pytest.mark.broker
def test_a_fleet_is_shown_and_saved(tmp_path, monkeypatch):
    chromium().quit()  # says which package is missing
    monkeypatch.setattr(picture, "FIRST_S", 1)
    monkeypatch.setattr(picture, "AWAY_S", 1)
    file = tmp_path / "page.png"
    monkeypatch.setattr(sys, "argv", ["picture", str(file), "--seconds", "1"])
    picture.main()
    assert file.read_bytes().startswith(b"\x89PNG")
