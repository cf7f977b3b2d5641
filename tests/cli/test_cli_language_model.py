"""`generate`, `score` and `evaluate` of a language model's folder."""

import io
import json
import math
import sys
from pathlib import Path

import pytest
from tiny_language_model import write_tiny_language_model
from tiny_model import write_tiny_model

from dragoman.cli.main import main
from dragoman.inference.generation.language_model import LanguageModel

TEXT = "a dog runs in the park.\nTwo dogs sleep.\n\nThe man sees a dög.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_tiny_language_model(folder / "writes")
    write_tiny_model(folder / "translates")
    (folder / "text").write_text(TEXT, encoding="utf-8")
    return folder


def test_one_text_and_several(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    model = LanguageModel.load(folder / "writes", "cpu")
    arguments = ["generate", str(folder / "writes"), "--max-tokens", "25", "--seed", "3", "--device", "cpu"]
    assert main([*arguments, "--prompt", "a dög"]) == 0
    expected = "a dög" + model.generate(["a dög"], seed=3, max_tokens=25)[0] + "\n"
    assert capfdbinary.readouterr().out.decode() == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("a dög\nTwo\n".encode())))
    assert main([*arguments, "--samples", "2", "--batch-size", "2", "--stop", "zz", "--stop", "e"]) == 0
    texts = model.generate(["a dög", "Two"], seed=3, max_tokens=25, samples=2, stop=["zz", "e"])
    prompts = ["a dög", "a dög", "Two", "Two"]
    expected = "---\n".join(prompt + text + "\n" for prompt, text in zip(prompts, texts, strict=True))
    assert capfdbinary.readouterr().out.decode() == expected


def test_log_probabilities_and_perplexities(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = LanguageModel.load(folder / "writes", "cpu")
    arguments = [str(folder / "writes"), "--device", "cpu", "--documents"]
    assert main(["score", *arguments, "blank_line", "--target", str(folder / "text")]) == 0
    documents = ["a dog runs in the park.\nTwo dogs sleep.", "The man sees a dög."]
    expected = [score.log_probability for score in model.score(documents)]
    shown = capfd.readouterr()
    assert [float(line) for line in shown.out.split()] == pytest.approx(expected, abs=1e-4)
    assert "2 documents, log-probability" in shown.err
    assert (
        main(["evaluate", "perplexity", *arguments, "file", "--stride", "4", "--text", str(folder / "text"), "--json"])
        == 0
    )
    (score,) = model.score([TEXT], stride=4)
    (found,) = json.loads(capfd.readouterr().out)["texts"]
    assert found["documents"] == 1
    assert (
        main(["evaluate", "perplexity", *arguments, "file", "--heading", "The .*", "--text", str(folder / "text")]) == 0
    )
    assert "(2 documents)" in capfd.readouterr().out
    assert found["unknown"] == 0
    for name, count in (("token", score.tokens), ("word", score.words), ("byte", len(TEXT.encode()) + 1)):
        assert found[f"per_{name}"] == pytest.approx(math.exp(-score.log_probability / count), rel=1e-5)


def test_unknowns_are_reported(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_tiny_language_model(tmp_path / "model", text={"subword": {"kind": "character", "min_frequency": 1}})
    assert main(["evaluate", "perplexity", str(tmp_path / "model"), "--text", str(folder / "text")]) == 0
    assert "are unknown" not in capfd.readouterr().out
    (tmp_path / "text").write_text("a dog Ж\n", encoding="utf-8")
    assert main(["evaluate", "perplexity", str(tmp_path / "model"), "--text", str(tmp_path / "text")]) == 0
    assert "1 tokens (12.50%) are unknown: each is predicted as one token" in capfd.readouterr().out


def test_options_of_translation_models_are_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = str(folder / "text")
    for arguments, message in (
        (["score", "writes", "--target", text, "--source", text], "--source can only be used with a translation model"),
        (["score", "translates", "--target", text], "give the source sentences with --source FILE"),
        (
            ["score", "translates", "--target", text, "--source", text, "--stride", "3"],
            "--stride can only be used with a language",
        ),
        (["evaluate", "writes", "--reference", text], "for a language model: dragoman evaluate perplexity"),
        (["generate", "translates", "--prompt", "a"], "is a translation model; it cannot continue texts"),
        (["translate", "writes", "-i", text], "is a language model; it cannot translate: use `dragoman generate`"),
        (["generate", "writes", "--prompt", "a", "--input", text], "use only one of them"),
        (["generate", "nowhere", "--prompt", "a"], "nowhere does not exist"),
        (["score", "nowhere", "--target", text], "nowhere does not exist"),
    ):
        assert main([arguments[0], str(folder / arguments[1]), *arguments[2:]]) in (1, 2)
        assert message in capfd.readouterr().err
    assert main(["evaluate", "perplexity", str(folder / "translates"), "--text", text]) == 2
    assert "is a translation model" in capfd.readouterr().err
