"""What `lasp-edge completion` prints is run by the shell itself."""

import shutil
import subprocess

import pytest

from lasp_edge.tool.command_line import commands, main
from tests.brokers import PATIENCE_S
from tests.support_missing import lacks


@pytest.fixture
def complete(capsys, tmp_path):
    """Return what bash proposes for a line that ends at the cursor."""
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)

    def proposed(*words):
        line = " ".join(f"'{word}'" for word in words)
        code = (
            f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
            '_lasp_edge; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        assert done.stderr == ""
        return done.stdout.split()

    return proposed


def test_bash_completes_commands_and_their_options(complete):
    assert complete("lasp-edge", "") == sorted(commands())
    assert complete("lasp-edge", "ag") == ["agent"]
    assert complete("lasp-edge", "ne") == ["new"]
    assert complete("lasp-edge", "doctor", "--js") == ["--json"]
    assert complete("lasp-edge", "agent", "--log-") == ["--log-format", "--log-level"]
    assert complete("lasp-edge", "agent", "--dev") == ["--device", "--device-field"]
    assert "--broker" in complete("lasp-edge", "members", "greenhouse", "--")


def test_bash_leaves_files_to_itself(complete):
    assert complete("lasp-edge", "agent", "green") == []
    assert complete("lasp-edge", "agnet", "--dev") == []


def test_zsh_takes_the_same_script(capsys, tmp_path):
    assert main(["completion", "zsh"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    if shutil.which("zsh") is None:
        lacks("zsh is not installed; type: sudo apt-get install -y zsh")
    code = f"source {script}; print -- $_comps[lasp-edge]"
    done = subprocess.run(
        ["zsh", "-f", "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("_bash_complete -o default -F _lasp_edge", "")
