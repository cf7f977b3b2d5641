"""One model for several target languages follows the tag before its source, and new tags can be added later."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from toy_runs import train_toy

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.folder import read_meta
from dragoman.cli.main import main
from dragoman.inference.translation.translator import Translator

TASKS = {"same": lambda word: word, "back": lambda word: word[::-1]}


def words(count: int, seed: int, without: list[str]) -> list[str]:
    draw = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        word = "".join(draw.choices("abcdef", k=draw.randint(2, 4)))
        if word not in without:
            found[word] = None
    return list(found)


def part(folder: Path, name: str, chosen: list[str]) -> list[dict[str, Any]]:
    """Write one corpus per task, with the same sources."""
    corpora = []
    for task, does in TASKS.items():
        path = folder / f"{name}.{task}.tsv"
        path.write_text("".join(f"{' '.join(word)}\t{' '.join(does(word))}\n" for word in chosen), encoding="utf-8")
        corpora.append({"pairs": str(path), "target_language": task, "name": f"{name} {task}"})
    return corpora


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The run's folder, and unseen words."""
    folder = tmp_path_factory.mktemp("languages")
    train = words(1200, 1, [])
    held_out = words(100, 2, train)
    stack = {"layers": 1, "heads": 4, "feedforward": 128, "norm": "pre"}
    data = {
        "train": part(folder, "train", train),
        "valid": part(folder, "valid", held_out),
        "cleaning": {"copied_words": None},
        "batch": {"tokens": 700},
        "temperature": 5,
        "source_language": "letters",
    }
    text = {"subword": {"kind": "character"}}
    stacks = {"encoder": stack, "decoder": stack}
    train_toy(folder / "run", data, text, stacks, 240, validate_every=120, log_every=120)
    return folder / "run", held_out


def test_the_tag_decides(trained: tuple[Path, list[str]]) -> None:
    folder, held_out = trained
    translator = Translator.load(folder, "cpu")
    sources = [" ".join(word) for word in held_out]
    assert translator.source_tags.languages == ("same", "back")
    for task, does in TASKS.items():
        found = translator.translate(sources, beam=1, to=task)
        right = sum(out == " ".join(does(word)) for out, word in zip(found, held_out, strict=True))
        assert right >= 0.95 * len(held_out), f"{task}: {right} of {len(held_out)} right; {found[:3]}"
    with pytest.raises(ConfigError, match="choose one with --to .* same, back"):
        translator.translate(sources)


def test_each_validation_set_is_logged_and_their_mean_decides(trained: tuple[Path, list[str]]) -> None:
    folder, _ = trained
    meta = read_meta(folder)
    assert meta.target_languages == ("same", "back")
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    judged = [line for line in log if "valid_bleu" in line]
    assert len(judged) == 2
    for line in judged:
        sets = line["valid_sets"]
        assert list(sets) == ["valid same", "valid back"]
        assert line["valid_bleu"] == pytest.approx(sum(each["bleu"] for each in sets.values()) / 2)
        assert line["valid_loss"] == pytest.approx(sum(each["loss"] for each in sets.values()) / 2)
        assert line["valid_bleu_signature"].startswith("mean of 2 sets, ")
    named = {score.data for score in meta.scores}
    assert named == {"valid same, valid back", "valid same", "valid back"}
    assert "letters → same, back" in (folder / "README.md").read_text()


def test_starting_from_it(trained: tuple[Path, list[str]], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A corpus without a language is refused; one with a new tag adds it and keeps the languages."""
    folder, held_out = trained
    pairs = tmp_path / "new.tsv"
    pairs.write_text("".join(f"{' '.join(word)}\t{' '.join(word)}\n" for word in held_out[:40]))
    common = ["train", f"train.start={folder}", "train.max_steps=2", "data.cleaning.copied_words=null"]
    common += ["train.threads=1", "train.precision=float32", "train.average.count=0", f"out={tmp_path / 'on'}"]
    plain = [f"data.train.pairs={pairs}", f"data.valid.pairs={pairs}"]
    assert main([*common, *plain]) == 2
    assert "has several target languages (same, back), so each corpus must specify one" in capfd.readouterr().err
    tagged = [f"data.train={{pairs: {pairs}, target_language: same, tags: [bt]}}"]
    for valid, message in (
        ("{pairs: %s}", "set it for all corpora"),
        ("{pairs: %s, target_language: nowhere}", "validation set .* has the tag 'to:nowhere', which no corpus"),
    ):
        assert main([*common, *tagged, f"data.valid={valid % pairs}"]) == 2
        said = " ".join(capfd.readouterr().err.split())
        assert re.search(message, said), said
    assert main([*common, *tagged, f"data.valid={{pairs: {pairs}, target_language: back}}"]) == 0
    assert "Tags that the model of train.start does not have: bt." in capfd.readouterr().err
    meta = read_meta(tmp_path / "on")
    assert meta.target_languages == ("same", "back")
    assert meta.tags == ("bt",)
    sources = [" ".join(word) for word in held_out[:5]]
    assert Translator.load(tmp_path / "on", "cpu").translate(sources, to="back", tags=["bt"])
