"""The tasks of the homework run on the built-in corpus, without a download, with the settings that its page gives."""

import re
import shlex
from pathlib import Path

import pytest
from embedded_corpus import generate
from repository import ROOT

from dragoman import recipes
from dragoman.cli.main import main

PAGE = (ROOT / "docs/lecture/homework.md").read_text(encoding="utf-8")
COMMANDS = [
    shlex.split(line) for line in re.findall(r"^dragoman train (recipes/.*)$", PAGE.replace("\\\n", ""), re.MULTILINE)
]
"""The arguments of `dragoman train` on the page, those of the built-in corpus last."""
TASKS = [command for command in COMMANDS if "$corpus" not in command]
CORPUS = re.search(r'^corpus="([^"]+)"$', PAGE, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small built-in corpus, as `dragoman demo --corpus-only --out corpus` writes it."""
    folder = tmp_path_factory.mktemp("homework")
    (folder / "corpus").mkdir()
    for name, sentences in zip(("train", "valid"), generate(train=120, valid=3), strict=True):
        for language in ("en", "de"):
            text = "".join(f"{getattr(sentence, language)}\n" for sentence in sentences)
            (folder / "corpus" / f"{name}.{language}").write_text(text, encoding="utf-8")
    return folder


def test_the_page_has_all_tasks_and_their_baselines() -> None:
    used = {Path(command[0]).stem for command in TASKS}
    assert used == {recipe.name for recipe in recipes("homework")} and len(used) == 4
    assert len(TASKS) == 9 and CORPUS is not None


@pytest.mark.parametrize(
    "command",
    [pytest.param(each, marks=[pytest.mark.slow] * (len(each) > 1)) for each in TASKS],
    ids=lambda command: Path(command[-1]).stem,
)
def test_a_task_runs_on_the_built_in_corpus(command: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert CORPUS is not None
    out = folder / f"run{len(list(folder.glob('run*')))}"
    small = [] if any("text.subword" in each for each in command) else ["text.subword.size=300"]
    limits = ["train.max_steps=2", "train.validate_every=2", "train.checkpoint_every=2", f"out={out}"]
    assert main(["train", str(ROOT / command[0]), *command[1:], *CORPUS[1].split(), *small, *limits, "-q"]) == 0
    assert (out / "model.safetensors").is_file()
    assert "source: corpus/train.en" in (out / "config.yaml").read_text(encoding="utf-8")
