"""Captures the screens of docs/how-to/training/watch.md with tmux, and prints them as Markdown.

    python benchmarks/training_screens.py

Run it on an idle machine, because the screens show the speed. DRAGOMAN_DATA is the folder that contains multi30k/. The
run has three minutes, is validated every 100 updates, and is interrupted during the fourth validation.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

SOCKET = "dragoman-screens"
COLUMNS, LINES = 110, 30
PAIRS = {"source": "train.en.gz", "target": "train.de.gz", "valid-source": "val.en.gz", "valid-target": "val.de.gz"}


def tmux(*arguments: str) -> str:
    """Run a command of a separate tmux server, and return its output."""
    done = subprocess.run(["tmux", "-L", SOCKET, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def wait_for(wanted: Callable[[list[str]], bool], seconds: float = 3600) -> list[str]:
    """Return the lines of the terminal as soon as they are wanted. Raises TimeoutError, or CalledProcessError at the
    end of the command.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        lines = [line.rstrip() for line in tmux("capture-pane", "-p", "-J", "-t", SOCKET).splitlines()]
        if wanted(lines := [line for line in lines if line]):
            return lines
        time.sleep(0.1)
    raise TimeoutError(f"not seen on the terminal within {seconds} s; its last lines are {lines[-3:]}")


def number(pattern: str, lines: list[str]) -> int:
    """Return the number that a pattern captures in the last line, or -1."""
    match = re.search(pattern, lines[-1]) if lines else None
    return -1 if match is None else int(match[1].replace(",", ""))


def since(text: str, lines: list[str]) -> list[str]:
    """Return the lines from the last one that contains a text."""
    return lines[max(index for index, line in enumerate(lines) if text in line) :]


def capture(command: list[str], folder: Path, every: int) -> list[list[str]]:
    """Return the lines of each screen. every: number of updates between two validations."""
    tmux("new-session", "-d", "-s", SOCKET, "-x", str(COLUMNS), "-y", str(LINES), "-c", str(folder), "sh")
    try:
        tmux("send-keys", "-t", SOCKET, f"clear; {shlex.join(command)}", "Enter")
        preparing = wait_for(lambda lines: any("Learning the vocabulary" in line for line in lines))
        training = wait_for(lambda lines: number(r"Training: step ([\d,]+) of", lines) >= 1.75 * every)
        third = f"step {3 * every:,} · validation"
        wait_for(lambda lines: any(third in line for line in lines))
        wait_for(lambda lines: number(r"Training: step ([\d,]+) of", lines) > 3 * every)
        validating = wait_for(lambda lines: number(r"Validating: ([\d,]+) of", lines) > 0)
        tmux("send-keys", "-t", SOCKET, "C-c", "")
        interrupted = wait_for(lambda lines: any(line.startswith("interrupted at") for line in lines))
    finally:
        tmux("kill-server")
    return [
        since("Data: preparing", preparing),
        since("pairs read", training),
        since(third, validating),
        [line for line in interrupted if line.startswith("interrupted at")],
    ]


def main() -> None:
    """Train in a temporary folder, and print the screens."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=100, help="number of updates between two validations")
    parser.add_argument("settings", nargs="*", help="further settings of the run, as KEY=VALUE")
    arguments = parser.parse_args()
    files = [part for name, file in PAIRS.items() for part in (f"--{name}", f"multi30k/{file}")]
    languages = ["data.source_language=en", "data.target_language=de"]
    limits = ["train.max_minutes=3", f"train.validate_every={arguments.every}", *arguments.settings]
    command = [sys.executable, "-m", "dragoman", "train", *files, "--out", "runs/ende", *languages, *limits]
    with TemporaryDirectory(prefix="dragoman-") as name:
        (Path(name) / "multi30k").symlink_to(Path(os.environ["DRAGOMAN_DATA"]).resolve() / "multi30k")
        for screen in capture(command, Path(name), arguments.every):
            print("```text", *screen, "```", sep="\n")


if __name__ == "__main__":
    main()
