"""A back-translation that is killed repeatedly, at any time, and resumed has the same bytes as an uninterrupted one."""

import random
import time
from pathlib import Path

import pytest
from trained_model import FOLDER as MODEL
from trained_model import PAIRS
from training_runs import Server

KILLS = 6


@pytest.mark.slow  # `test_a_stopped_run_resumes_to_the_same_bytes` is the quick variant
def test_a_killed_back_translation_is_resumed(server: Server, tmp_path: Path) -> None:
    lines = [source if number % 5 else f"{source} {number}" for number in range(40) for source, _ in PAIRS]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
        (folder / "mono").write_text("".join(f"{line}\n" for line in lines))
    command = ["backtranslate", str(MODEL), "--input", "mono", "--out", "pairs.tsv.gz", "--batch-size", "1"]
    command += ["--beam", "2", "--threads", "1", "duplicates=false"]
    started = time.monotonic()
    process = server.start(whole, *command)
    assert process.wait() == 0, process.said
    duration, calls = time.monotonic() - started, int((whole / "calls").read_text())
    expected = (whole / "pairs.tsv.gz").read_bytes()
    draw = random.Random(4)
    kills = rounds = 0
    places = set()
    while kills < KILLS or not rounds:
        by_clock = kills % 2 == 0
        fatal = draw.randrange(1, calls // 2) if kills < KILLS and not by_clock else None
        process = server.start(killed, *command, fatal=fatal)
        if kills < KILLS and by_clock:
            time.sleep(draw.uniform(0.05, 0.5) * duration)
            process.kill()
        code = process.wait()
        work = killed / "pairs.tsv.gz.partial"
        if code == -9:
            kills += 1
            places.add((work / "text").stat().st_size if (work / "text").exists() else 0)
            if (killed / "pairs.tsv.gz").exists():  # killed while exiting, with all work done
                assert (killed / "pairs.tsv.gz").read_bytes() == expected
                (killed / "pairs.tsv.gz").unlink()
            continue
        assert code == 0, process.said
        assert (killed / "pairs.tsv.gz").read_bytes() == expected
        assert not work.exists()
        rounds += 1
        if by_clock:
            duration /= 2  # the kill came too late: the first run had to import modules that later runs inherit
        (killed / "pairs.tsv.gz").unlink()
    assert len(places) > KILLS // 3, "the kills all came at the same place"
