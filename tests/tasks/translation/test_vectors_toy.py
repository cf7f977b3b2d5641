"""From noisy vectors to letters on the command line: train, resume, translate, score, evaluate, inspect."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman import inspect
from dragoman.cli.main import main
from dragoman.inference.translation.translator import Translator

LETTERS = "abcdef"
SETTINGS = [
    f"text.vectors.width={len(LETTERS)}",
    "text.subword.kind=character",
    "model.preset=null",
    "model.width=32",
    "model.dropout=0",
    *(f"model.{side}.{name}" for side in ("encoder", "decoder") for name in ("layers=1", "heads=2", "feedforward=64")),
    "data.batch.tokens=400",
    "train.average.count=0",
    "train.precision=float32",
    "train.device=cpu",
    "train.threads=1",
    "train.validate_every=250",
    "train.checkpoint_every=100",
    "train.schedule.kind=inverse_sqrt",
    "train.schedule.warmup=60",
    "train.schedule.peak=0.006",
]


def write(folder: Path, part: str, count: int, seed: int) -> list[str]:
    """Write words of two to four letters; each letter's vector is one-hot, plus noise with a deviation of 0.2."""
    draw, noise = random.Random(seed), np.random.default_rng(seed)
    words = ["".join(draw.choices(LETTERS, k=draw.randint(2, 4))) for _ in range(count)]
    lines = [
        (np.eye(6)[[LETTERS.index(x) for x in word]] + noise.normal(0, 0.2, (len(word), 6))).round(3) for word in words
    ]
    (folder / f"{part}.jsonl").write_text("".join(json.dumps(line.tolist()) + "\n" for line in lines), encoding="utf-8")
    (folder / f"{part}.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return words


@pytest.mark.slow
def test_learns_to_name_what_it_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    write(tmp_path, "train", 2000, 1)
    words = write(tmp_path, "valid", 100, 2)
    files = ["--source", "train.jsonl", "--target", "train.txt"]
    files += ["--valid-source", "valid.jsonl", "--valid-target", "valid.txt", "--out", "run"]
    try:
        assert main(["train", *SETTINGS, *files, "train.max_steps=100"]) == 0
        assert main(["train", *SETTINGS, *files, "train.max_steps=250", "--resume"]) == 0
        capsys.readouterr()
        assert main(["translate", "run", "--input", "valid.jsonl", "--output", "out.txt", "--beam", "2"]) == 0
        assert main(["score", "run", "--source", "valid.jsonl", "--target", "valid.txt"]) == 0
        scores = [float(line) for line in capsys.readouterr().out.split()]
        found = (tmp_path / "out.txt").read_text(encoding="utf-8").splitlines()
        right = sum(one == other for one, other in zip(found, words, strict=True))
        assert right >= 95, f"{right} of 100 right: {found[:5]}, wanted {words[:5]}"
        assert len(scores) == 100
        assert np.median(scores) > -0.5
        evaluate = [
            "evaluate",
            "run",
            "--source",
            "valid.jsonl",
            "--reference",
            "valid.txt",
            "--metric",
            "chrf",
            "--json",
        ]
        assert main([*evaluate, "--beam", "1"]) == 0
        assert json.loads(capsys.readouterr().out)["systems"][0]["scores"][0]["value"] > 95

        translator = Translator.load("run")
        lines = (tmp_path / "valid.jsonl").read_text(encoding="utf-8").splitlines()
        assert translator.translate(["", *lines[:3], " "], beam=2) == ["", *found[:3], ""]
        maps = inspect(translator, lines[0]).maps
        places = tuple(str(place + 1) for place in range(len(words[0])))
        assert all(each.keys == (*places, "</s>") for each in maps if each.kind == "decoder.cross_attention")

        (tmp_path / "bad.jsonl").write_text("\n".join([lines[0], "", "[[1]]"]), encoding="utf-8")
        assert main(["translate", "run", "--input", "bad.jsonl"]) == 1
        assert "bad.jsonl, line 3: vector 1 has 1 numbers" in " ".join(capsys.readouterr().err.split())
    finally:
        torch.set_num_threads(threads)
