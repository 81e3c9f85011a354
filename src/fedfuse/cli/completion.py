"""``fedfuse completion``: what a shell needs to complete command lines of ours."""

from __future__ import annotations

import re
import sys
from enum import StrEnum
from typing import Annotated

import typer

LINE = "--line"
"""The option by which the scripts ask for what may follow; ``command_line.py`` obeys it without Typer."""

BASH = """\
# fedfuse in bash: eval "$(fedfuse completion bash)" in ~/.bashrc
_fedfuse() {
    local IFS=$'\\n'
    COMPREPLY=($(fedfuse completion --line bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null))
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/.=,] ]]; then
        compopt -o nospace
    fi
}
complete -F _fedfuse fedfuse
"""
ZSH = """\
#compdef fedfuse
# fedfuse in zsh: eval "$(fedfuse completion zsh)" in ~/.zshrc, after compinit
_fedfuse() {
    local -a whole unfinished
    local word meaning
    while IFS=$'\\t' read -r word meaning; do
        case $word in
            (*[/.=,]) unfinished+=("${word//:/\\\\:}:$meaning") ;;
            (*) whole+=("${word//:/\\\\:}:$meaning") ;;
        esac
    done < <(fedfuse completion --line zsh "${(j: :)${(@q)words[1,CURRENT]}}" 2>/dev/null)
    (( $#whole )) && _describe -V fedfuse whole
    (( $#unfinished )) && _describe -V fedfuse unfinished -S ''
}
if [ "$funcstack[1]" = "_fedfuse" ]; then
    _fedfuse
else
    compdef _fedfuse fedfuse
fi
"""
FISH = """\
# fedfuse in fish: fedfuse completion fish > ~/.config/fish/completions/fedfuse.fish
complete -c fedfuse -f -a '(fedfuse completion --line fish (commandline -cp) 2>/dev/null)'
"""


SPECIAL = re.compile(r"([^\w./=:,@%+-])", re.ASCII)
"""What bash would take for more than a letter."""


class Shell(StrEnum):
    """The shells that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


SCRIPTS = {Shell.BASH: BASH, Shell.ZSH: ZSH, Shell.FISH: FISH}


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="the shell to print it for")],
) -> None:
    """Print what your shell needs to complete command lines. Its first line says where it goes."""
    sys.stdout.write(SCRIPTS[shell])


def answer(shell: str, line: str, breaks: str = "") -> None:
    """Print what may follow a line, one word in each, with its meaning where the shell shows it."""
    from fedfuse.cli.completing import candidates, open_quote, split

    found = candidates(line)
    if shell == "bash":
        word = split(line)[-1]
        kept = 1 + max((word.rfind(sign) for sign in breaks if sign in "=:"), default=-1)
        lines = [one.word[kept:] if open_quote(line) else SPECIAL.sub(r"\\\1", one.word[kept:]) for one in found]
    else:
        lines = [f"{one.word}\t{_short(one.help)}" for one in found]
    sys.stdout.write("".join(f"{line}\n" for line in dict.fromkeys(lines)))


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= 80 else f"{plain[:77]}..."
