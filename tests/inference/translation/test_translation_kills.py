"""A translation that is killed repeatedly, at any time, and resumed has the same bytes as an uninterrupted one."""

import random
import time
from pathlib import Path

import pytest
from trained_model import FOLDER as MODEL
from training_runs import Process, Server
from waiting import wait_until

KILLS = 4


def size(text: Path) -> int:
    return text.stat().st_size if text.exists() else 0


def wait_until_longer(text: Path, process: Process) -> None:
    """Wait until the file is longer than now, or until the translation has ended."""
    before = size(text)
    wait_until(lambda: size(text) > before or not process.is_alive, interval=0.002)


@pytest.mark.slow
def test_a_killed_translation_is_resumed(server: Server, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        (folder / "in").write_text("\n\n\n".join(f"a dog {'sees ' * (number % 7)}{number}\n" for number in range(30)))
    command = ["translate", str(MODEL), "-i", "in", "-o", "out.gz", "--batch-size", "1", "--scores"]
    command += ["--beam", "1", "--engine", "torch", "--threads", "1"]
    started = time.monotonic()
    process = server.start(whole, *command)
    assert process.wait() == 0, process.said
    duration, calls = time.monotonic() - started, int((whole / "calls").read_text())
    expected = (whole / "out.gz").read_bytes()
    draw = random.Random(3)
    text = killed / "out.gz.partial" / "text"
    places, kills, ended = set(), 0, 0
    while kills < KILLS or not ended:
        fatal = draw.randrange(1, calls // 3) if kills % 2 and kills < KILLS else None
        process = server.start(killed, *command, "--resume", fatal=fatal)
        if kills % 2 == 0 and kills < KILLS:
            wait_until_longer(text, process)
            time.sleep(draw.uniform(0, 0.1) * duration)
            process.kill()
        if process.wait() == -9:
            kills += 1
            places.add(size(text))
            continue
        assert (killed / "out.gz").read_bytes() == expected, process.said
        assert sorted(path.name for path in killed.iterdir()) == ["calls", "in", "out.gz", "stderr", "stdout"]
        ended += 1
        (killed / "out.gz").unlink()
    assert len(places) > KILLS // 3, "the kills all came at the same place"
