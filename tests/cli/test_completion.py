"""Completion of commands and options by the shell."""

import os
import subprocess
import sys

import pytest

from dragoman.cli.root import root_command


def complete(*words: str) -> list[str]:
    """Return the completions of the last word, as Bash asks for them."""
    environment = {
        **os.environ,
        "_DRAGOMAN_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [sys.executable, "-m", "dragoman"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["dragoman", "evaluate", "per"], {"perplexity"}),
        (["dragoman", "translate", "runs/ende", "--bea"], {"--beam"}),
        (["dragoman", "evaluate", "--hyp"], {"--hypothesis"}),
        (["dragoman", "evaluate", "labels", "runs/labels", "--conf"], {"--confusion"}),
    ],
)
def test_completions(words: list[str], found: set[str]) -> None:
    assert set(complete(*words)) == found


def test_completions_of_commands() -> None:
    """Of the core and of all installed add-ons."""
    found = complete("dragoman", "tra")
    assert found == sorted(name for name in root_command().commands if name.startswith("tra"))
    assert {"train", "translate"} <= {*found}


def test_the_script_of_a_shell_is_shown() -> None:
    command = [sys.executable, "-m", "dragoman", "--show-completion", "zsh"]
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert "compdef" in done.stdout and "_DRAGOMAN_COMPLETE=complete_zsh" in done.stdout
