"""Print a script with which bash or zsh completes these commands and their options.

bash: lasp-edge completion bash > ~/.local/share/bash-completion/completions/lasp-edge
zsh:  lasp-edge completion zsh >> ~/.zshrc
"""

import argparse
from importlib import import_module

from lasp_edge.tool.parser import CommandParser

_ZSH = "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n"
"""The lines with which zsh runs bash's completions."""
_BASH = """\
_lasp_edge() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} words=
    if (( COMP_CWORD == 1 )); then
        words="{commands}"
    elif [[ $word == -* ]]; then
        case ${{COMP_WORDS[1]}} in
{cases}
        esac
    fi
    COMPREPLY=()
    if [[ -n $words ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    fi
}}
complete -o default -F _lasp_edge lasp-edge
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("shell", choices=("bash", "zsh"), help="whose completion is wanted")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    from lasp_edge.tool.command_line import commands  # noqa: PLC0415 - which also runs this one

    known = commands()
    cases = [_case(name, module) for name, module in sorted(known.items())]
    script = _BASH.format(commands=" ".join(sorted(known)), cases="\n".join(filter(None, cases)))
    print((_ZSH if arguments.shell == "zsh" else "") + script, end="")  # noqa: T201
    return 0


def _case(name: str, module: str) -> str:
    """Return bash's line for one command; empty where the command needs a package not here."""
    try:
        command = import_module(module)
    except ImportError:
        return ""
    parser = CommandParser(name, None)
    command.add_arguments(parser)
    options = sorted(word for word in parser._option_string_actions if word.startswith("--"))  # noqa: SLF001
    return f'            {name}) words="{" ".join(options)}" ;;'
