"""benchmarks/history: its systems are valid settings, finished systems are not repeated, and the table is complete."""

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from repository import ROOT

from dragoman.tasks.train import load_recipe

FOLDER = ROOT / "benchmarks" / "history"
MODULES = ("report", "runs", "systems")


@pytest.fixture(scope="module")
def history() -> Iterator[dict[str, ModuleType]]:
    sys.path.insert(0, str(FOLDER))
    yield {name: import_module(name) for name in MODULES}
    sys.path.remove(str(FOLDER))
    for name in MODULES:
        del sys.modules[name]


def test_every_system_is_a_different_run(
    history: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path))
    for corpus in history["systems"].CORPORA.values():
        runs = [
            load_recipe(system.recipe, [os.path.expandvars(each) for each in system.settings])
            for system in corpus.systems
        ]
        assert len({run.model_dump_json() for run in runs}) == len(runs)
        assert len({system.name for system in corpus.systems}) == len(runs)


def results(command: list[str]) -> str:
    if command[0] == "train":
        return ""
    if "--documents" in command:
        return json.dumps({"texts": [{"per_word": 113.6, "words": 9, "unknown": 0}]})
    scores = [
        {"name": name, "value": value, "signature": "s"} for name, value in (("BLEU", 30.25), ("tokenised", 31.5))
    ]
    return json.dumps({"systems": [{"scores": scores}]})


def test_a_killed_benchmark_continues(
    history: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first command is killed during training; the second resumes the run, and the third has nothing to do."""
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path / "data"))
    runs, corpus = history["runs"], history["systems"].CORPORA["multi30k"]
    system, commands = next(each for each in corpus.systems if each.name == "rnn"), []

    def killed(command: list[str], log: Path) -> str:
        commands.append(command)
        (tmp_path / "multi30k-rnn-3" / "training").mkdir(parents=True)
        raise KeyboardInterrupt

    def finishes(command: list[str], log: Path) -> str:
        commands.append(command)
        return results(command)

    monkeypatch.setattr(runs, "_run", killed)
    with pytest.raises(KeyboardInterrupt):
        runs.measure(corpus, system, 3, tmp_path)
    before = runs._times(tmp_path / "multi30k-rnn-3")
    assert before["wall_seconds"] > 0
    assert runs.finished(tmp_path) == []
    monkeypatch.setattr(runs, "_run", finishes)
    for _ in range(2):
        runs.measure(corpus, system, 3, tmp_path)
    assert [command[0] for command in commands] == ["train", "train", "evaluate"]
    assert "train.max_minutes=3" in commands[0]
    assert "--resume" in commands[1]
    (line,) = runs.finished(tmp_path)
    assert (line["system"], line["minutes"], line["value"], line["tokenised"]) == ("rnn", 3, 30.25, 31.5)
    assert line["training_minutes"] * 60 > before["wall_seconds"]
    with (tmp_path / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"corpus": "mul')  # as in a killed process
    assert runs.finished(tmp_path) == [line]
    runs.measure(corpus, system, 5, tmp_path)  # another limit is another run
    assert commands[-2][-1].endswith("multi30k-rnn-5")


def test_the_table_and_the_picture(
    history: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(history["runs"], "_run", lambda command, log: results(command))
    corpora: dict[str, Any] = history["systems"].CORPORA
    for name in ("wikitext-2", "multi30k"):
        for system in reversed(corpora[name].systems):
            history["runs"].measure(corpora[name], system, 1, tmp_path)
    lines = history["runs"].finished(tmp_path)
    text = history["report"].table(lines)
    rows = [row.split(" | ")[0].removeprefix("| ") for row in text.splitlines() if row.startswith("| ")]
    titles = [system.title for name in ("multi30k", "wikitext-2") for system in corpora[name].systems]
    assert [row for row in rows if row not in ("system", "---")] == titles
    assert "| Transformer | Vaswani et al. 2017 | 30.25 | 31.50 |" in text
    assert "| LSTM | Sundermeyer et al. 2012 | 113.60 | 0 |" in text
    history["report"].draw(lines, tmp_path / "history.png")
    assert (tmp_path / "history.png").read_bytes().startswith(b"\x89PNG")
