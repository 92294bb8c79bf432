"""Damaged stores of an agent and a gateway: right, put aside, or stated."""

from simulations import damaged


def test_no_damage_of_a_store_makes_a_wrong_window_that_nobody_names(capsys):
    assert damaged.main(["--stores", "6"]) == 0
    assert "WRONG" not in capsys.readouterr().out


def test_a_gateway_that_puts_nothing_aside_is_found(monkeypatch):
    """The check can fail: an empty file is as right as any where nothing is compared."""
    monkeypatch.setattr(damaged, "truth", dict)
    monkeypatch.setattr(damaged.FilesUnderTest, "is_stated", lambda _site: False)
    assert damaged.main(["--stores", "1"]) == 1
