"""The pictures in README.md and docs can be made again."""

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
    monkeypatch.setattr(picture, "SILENT_S", 1)
    monkeypatch.setattr(picture, "DRAWN_S", 1)
    monkeypatch.setattr(sys, "argv", ["picture", str(tmp_path), "--seconds", "1"])
    monkeypatch.setattr(picture, "_plot", lambda *_: None)  # no window is final so soon
    picture.main()
    for name in picture.VIEWS:
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
