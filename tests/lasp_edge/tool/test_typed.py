"""How `lasp-edge` is typed where it is proposed."""

import subprocess
from pathlib import Path

from lasp_edge.tool.typed import typed_in


def test_the_command_is_proposed_as_it_is_typed_where_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    script = tmp_path / ".venv" / "bin" / "lasp-edge"
    script.write_text("#!/bin/sh\necho it is I\n")
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / ".venv" / "bin" / "python"))
    assert typed_in(Path()) == ".venv/bin/lasp-edge"
    ran = subprocess.run(typed_in(Path()), shell=True, capture_output=True, check=True)
    assert ran.stdout == b"it is I\n"
    monkeypatch.setenv("PATH", str(script.parent), prepend=":")
    assert typed_in(Path()) == "lasp-edge"
    monkeypatch.delenv("PATH")
    (tmp_path / "house").mkdir()
    assert typed_in(tmp_path / "house") == "../.venv/bin/lasp-edge"
    script.unlink()
    assert typed_in(Path()).endswith("python -m lasp_edge")
