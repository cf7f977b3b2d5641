"""Preparing plain text gives the same result after any number of kills and with any number of processes."""

import random
import signal
from pathlib import Path

import pytest
from prepared_files import blocks_done, contents
from training_runs import Server

SCRIPT = """
import os, signal, sys
from pathlib import Path
from dragoman.data.corpora import documents
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.cleaning import chunks
from dragoman.data.preparation.prepare import prepare_texts
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.text.vocabularies.bpe import BPEConfig
from dragoman.text.tokenizers import TextConfig

documents.LONGEST, chunks.BYTES = 400, 1500
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
corpora = [
    TextCorpusConfig(text=folder / "book", documents="file"),
    TextCorpusConfig(text=folder / "book", documents="blank_line", weight=2),
]
prepare_texts(corpora, TextCleaningConfig(), TextConfig(subword=BPEConfig(size=300)), folder / "cache", 32,
    workers=workers)
print(calls)
"""


def write(folder: Path) -> None:
    draw = random.Random(3)
    words = [f"{draw.choice('abcdefgh')}{number}x" for number in range(60)]
    lines = [" ".join(draw.choices(words, k=draw.randint(1, 30))) if draw.random() < 0.9 else "" for _ in range(300)]
    (folder / "book").write_text("\n".join(lines))


def run(server: Server, folder: Path, workers: int = 0, fatal: int = -1) -> tuple[int, str]:
    script = folder / "prepare.py"
    if not script.exists():  # a process that has just been started may be reading it
        script.write_text(SCRIPT, encoding="utf-8")
    process = server.start(folder, "prepare.py", str(folder), str(workers), str(fatal))
    assert process.wait() in (0, -signal.SIGKILL), process.said
    return process.wait(), (folder / "stdout").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def prepared(server: Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], int]:
    """Return the result of an uninterrupted process, and how many calls could have been its last."""
    folder = tmp_path_factory.mktemp("undisturbed")
    write(folder)
    _, calls = run(server, folder)
    found = contents(folder)
    assert sum(name.endswith("text.bin") for name in found) == 2
    return found, int(calls)


def test_a_killed_preparation_reuses_completed_blocks_and_gives_the_same_result(
    server: Server, tmp_path: Path, prepared: tuple[dict[str, str], int]
) -> None:
    expected, calls = prepared
    write(tmp_path)
    most = 0
    for fatal in (calls // 4, calls // 3, calls // 4):
        before = blocks_done(tmp_path)
        code, _ = run(server, tmp_path, fatal=fatal)
        after = blocks_done(tmp_path)
        assert code == -signal.SIGKILL
        assert before.items() <= after.items()  # none was prepared again
        most = max(most, len(after))
    assert most > 20
    run(server, tmp_path, workers=2)
    assert contents(tmp_path) == expected
