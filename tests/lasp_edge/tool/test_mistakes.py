"""Mistakes on the command line: each is one sentence that says what is needed."""

import pytest

from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main

GREENHOUSE = "lasp_edge.examples.greenhouse"
MISTAKES = {
    "--verbose agent": "options stand after the command, as in `lasp-edge agent --verbose`",
    f"simulate {GREENHOUSE} --hours 5m": "--hours: a number is needed, not '5m';",
    f"simulate {GREENHOUSE} --devices x": "--devices: a whole number is needed, not 'x';",
    f"simulate {GREENHOUSE} --devices 0": "--devices: a number above 0 is needed, not 0",
    f"simulate {GREENHOUSE} --hours nan": "--hours: a number above 0 is needed, not nan",
    f"simulate {GREENHOUSE} --plot no/run.html": "--plot no/run.html: No such file or directory",
    f"simulate {GREENHOUSE} --faults kil=20": "there is no fault 'kil'; did you mean \"kill\"?",
    f"simulate {GREENHOUSE} --faults kill": "a number from 0 is needed, such as kill=20, not ''",
    f"simulate {GREENHOUSE} --faults kill=-1": "such as kill=20, not '-1'",
    f"simulate {GREENHOUSE} --faults loss=2": "loss: of messages a share from 0 to 1 is needed",
    f"agent {GREENHOUSE} --log-level trace": "--log-level: one of debug, info, warning, error is",
    "service start": "install is needed, not 'start'; the words of `lasp-edge agent` stand after",
    "service install x:y --device a": "the words of `lasp-edge agent` stand after --; `lasp-edge",
    "broker confg x:y": "config is needed, not 'confg'; `lasp-edge broker --help` says more",
    "completion zhs": "one of bash, zsh is needed, not 'zhs'; did you mean zsh?",
    "check ./house": "./house is a path; a module is needed: house:program",
    "check garden/house.py": "a module is needed: house:program, typed in garden",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_told_in_one_sentence(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == Exit.USAGE
    out, err = capsys.readouterr()
    assert MISTAKES[words] in err
    assert (out, err.count("\n")) == ("", 1)


def test_only_an_option_that_is_like_the_typed_one_is_proposed(capsys):
    assert main(["get", "mean", "--broker", "mqtt://x", "--listen", "1"]) == Exit.USAGE
    assert "did you mean" not in capsys.readouterr().err
