"""Preparing a corpus with any number of processes, after kills, and concurrently gives the same result."""

import json
import random
import signal
from pathlib import Path

import pytest
from prepared_files import blocks_done, contents
from training_runs import Process, Server

from dragoman.data.cleaning import chunks
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.prepare import prepare
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.bpe import BPEConfig

PAIRS = 40
SCRIPT = """
import os, signal, sys
from pathlib import Path
from dragoman.data.cleaning import chunks
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.prepare import prepare
from dragoman.text.vocabularies.bpe import BPEConfig
from dragoman.text.tokenizers import TextConfig

chunks.PAIRS = 40
folder, workers, fatal = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
calls = 0

def counting(function):
    def counted(*arguments, **options):
        global calls
        calls += 1
        if calls == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)
    return counted

os.fsync, os.rename, os.replace = map(counting, (os.fsync, os.rename, os.replace))
corpora = [CorpusConfig(pairs=folder / "a.tsv"), CorpusConfig(pairs=folder / "b.tsv", tags=("bt",))]
text = TextConfig(subword=BPEConfig(size=300))
prepare(corpora, CleaningConfig(max_tokens=20), text, folder / "cache", workers=workers)
print(calls)
"""


def write(folder: Path) -> None:
    draw = random.Random(3)
    words = [f"{draw.choice('abcdefgh')}{number}x" for number in range(60)]
    for name, count in (("a.tsv", 400), ("b.tsv", 250)):
        lines = [
            "\t".join(" ".join(draw.choices(words, k=draw.randint(1, 9))) for _ in range(2)) if draw.random() < 0.9
            else draw.choice(["\tleer", "copy that now here\tcopy that now here", "same\tgleich"])
            for _ in range(count)
        ]  # fmt: skip
        (folder / name).write_text("".join(f"{line}\n" for line in lines))


def start(server: Server, folder: Path, workers: int = 0, fatal: int = -1, name: str = "") -> Process:
    script = folder / "prepare.py"
    if not script.exists():  # a process that has just been started may be reading it
        script.write_text(SCRIPT, encoding="utf-8")
    return server.start(folder, "prepare.py", str(folder), str(workers), str(fatal), name=name)


@pytest.fixture(scope="module")
def prepared(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    """Return the result of an uninterrupted process, and how many calls could have been its last."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write(folder)
    process = start(server, folder)
    assert process.wait() == 0, process.said
    found = contents(folder)
    assert not any("unfinished" in name or "partial" in name for name in found)
    assert sum(name.endswith("dataset.json") for name in found) == 2
    assert any(name.endswith("dropped.duplicates.bin") for name in found)
    return found, int((folder / "stdout").read_text(encoding="utf-8"))


def test_a_killed_preparation_reuses_completed_blocks_and_gives_the_same_result(
    server: Server, tmp_path: Path, prepared: tuple[dict[str, str], int]
) -> None:
    expected, calls = prepared
    write(tmp_path)
    draw = random.Random(1)
    kept = 0
    for fatal in [calls // 6, calls // 3, calls // 3, draw.randrange(2, calls // 3)]:
        before = blocks_done(tmp_path)
        process = start(server, tmp_path, fatal=fatal)
        if process.wait() == 0:
            break
        assert process.wait() == -signal.SIGKILL, process.said
        after = blocks_done(tmp_path)
        assert before.items() <= after.items()  # none was prepared again
        kept = max(kept, len(after))
    assert kept > 10
    process = start(server, tmp_path)
    assert process.wait() == 0, process.said
    assert contents(tmp_path) == expected


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_processes(
    server: Server, tmp_path: Path, prepared: tuple[dict[str, str], int]
) -> None:
    write(tmp_path)
    process = start(server, tmp_path, workers=2)
    assert process.wait() == 0, process.said
    assert contents(tmp_path) == prepared[0]


def test_of_several_processes_one_works_and_the_others_wait(
    server: Server, tmp_path: Path, prepared: tuple[dict[str, str], int]
) -> None:
    write(tmp_path)
    processes = [start(server, tmp_path, name=str(number)) for number in range(3)]
    codes = [process.wait() for process in processes]
    said = [process.said for process in processes]
    assert codes == [0, 0, 0], said
    assert sum("preparing" in text for text in said) == 1
    assert sum("reused" in text for text in said) == 2
    assert contents(tmp_path) == prepared[0]


def test_a_damaged_block_is_prepared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PAIRS", PAIRS)
    write(tmp_path)
    corpus, text = CorpusConfig(pairs=tmp_path / "a.tsv"), TextConfig(subword=BPEConfig(size=300))

    def made(folder: Path) -> str:
        return prepare(corpus, CleaningConfig(), text, folder, workers=0).dataset.fingerprint

    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dragoman.data.preparation.pipeline.learn_vocabulary", interrupted)
        with pytest.raises(KeyboardInterrupt):
            made(tmp_path / "cache")
    (unfinished,) = (tmp_path / "cache").glob(".*.unfinished")
    (unfinished / "read.json").unlink()
    damaged = unfinished / "000003.npz"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    assert made(tmp_path / "cache") == made(tmp_path / "other")
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [
        path.name for path in (tmp_path / "other").iterdir()
    ]
    sizes = [
        json.loads(next(path.glob("*/dataset.json")).read_text())["files"]
        for path in tmp_path.iterdir()
        if path.is_dir()
    ]
    assert sizes[0] == sizes[1]
