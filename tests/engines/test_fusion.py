"""Shallow fusion with a language model, from the rule to the command line."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_language_model import write_tiny_language_model
from tiny_model import SOURCES, TARGETS, write_tiny_model

from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import model_parameters, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.cli.main import main
from dragoman.inference.translation.translator import Translator
from dragoman.tasks.registry import open_job
from dragoman.text.tokenizers import Tokenizers

TEXTS = [*SOURCES, "", "dogs run ."]


def fused_with(folder: Path, weight: float = 0.1) -> dict[str, Any]:
    return {"fusion": {"language_model": str(folder), "weight": weight}}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A translation model, and a language model with its vocabulary, random parameters and 16 positions."""
    base = tmp_path_factory.mktemp("fused")
    write_tiny_model(base / "translation")
    positions = {"kind": "learned", "limit": 16}
    from tiny_language_model import DECODER, tiny_run

    from dragoman.base.settings.load import dump_settings

    run = tiny_run(base / "language", model={"preset": "tiny", "width": 8, "decoder": DECODER, "positions": positions})
    target = Tokenizers.load(base / "translation").target
    model = run.model.build(target.size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    write_model_folder(
        base / "language", model_parameters(model), dump_settings(run), Tokenizers(target, target), Meta(step=1)
    )
    return base / "translation", base / "language"


def test_texts_are_searched_with_a_language_model(folders: tuple[Path, Path]) -> None:
    translator = Translator.load(folders[0], "cpu")
    plain = translator.request(beam=3)
    fused = translator.request(beam=3, search=fused_with(folders[1], 0.5))
    nothing = translator.request(beam=3, search=fused_with(folders[1], 0.0))
    texts = [each for each in TEXTS for _ in range(2)]
    requests = [plain, fused] * len(TEXTS)
    mixed = translator.translate_nbest(texts, requests, batch_size=3)
    alone = [translator.translate_nbest([text], [request])[0] for text, request in zip(texts, requests, strict=True)]
    assert [each[0].ids for each in mixed] == [each[0].ids for each in alone]
    assert [each[0].ids for each in mixed[::2]] != [each[0].ids for each in mixed[1::2]]
    assert all(len(each[0].ids) <= 16 for each in mixed[1::2])  # the language model's positions end
    short = translator.request(beam=3, search={"maximum_length": 9})
    again = translator.request(beam=3, search={"maximum_length": 9, **fused_with(folders[1], 0.0)})
    assert nothing.decoding.fusion.weight == 0.0  # type: ignore[union-attr]
    for one, other in zip(
        translator.translate_nbest(TEXTS, short), translator.translate_nbest(TEXTS, again), strict=True
    ):
        assert one[0].ids == other[0].ids


def test_the_command_line_and_its_errors(
    folders: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model, language_model = map(str, folders)
    (tmp_path / "in").write_text("\n".join(TEXTS) + "\n")
    verb = ["translate", model, "--input", str(tmp_path / "in"), "--device", "cpu"]
    assert main([*verb, "--language-model", language_model, "--fusion", "0.5"]) == 0
    printed, told = capfd.readouterr()
    expected = Translator.load(folders[0], "cpu").translate(TEXTS, search=fused_with(folders[1], 0.5))
    assert printed.split("\n")[:-1] == expected
    assert told.count("has no fusion") <= 1  # of the native engine, if it is available
    assert main([*verb, "--fusion", "0.5"]) == 2
    assert main([*verb, "--language-model", language_model, "--fusion", "-1"]) == 2
    assert main([*verb, "--sample", "--language-model", language_model]) == 2
    assert main([*verb, "--language-model", model]) == 1
    assert main([*verb, "--language-model", str(tmp_path / "nowhere")]) == 1
    write_tiny_language_model(tmp_path / "other", text={"subword": {"kind": "bpe", "size": 270}})
    with pytest.raises(ModelError, match="vocabulary of the language model .*data.vocabulary_of"):
        Translator.load(folders[0], "cpu").translate(TEXTS, search=fused_with(tmp_path / "other"))
    translator = Translator.load(folders[0], "cpu")
    request = translator.request(search=fused_with(folders[1]), prefix="ein Hund rennt im Park " * 5)
    with pytest.raises(ConfigError, match="raise the maximum length"):
        translator.translate_nbest(SOURCES[:1], request)


def test_a_language_model_gets_the_vocabulary_of_a_translator(folders: tuple[Path, Path], tmp_path: Path) -> None:
    from tiny_language_model import DECODER, tiny_run

    from dragoman.tasks.train import train

    (tmp_path / "text").write_text("\n".join(TARGETS * 4) + "\n")
    corpus = {"text": str(tmp_path / "text"), "documents": "line"}
    data = {"train": corpus, "valid": corpus, "block": 16, "vocabulary_of": str(folders[0])}
    recipe = {
        "task": {"kind": "language_model"},
        "data": data,
        "model": {"preset": "tiny", "width": 8, "decoder": DECODER},
        "train": {"max_steps": 1},
        "out": str(tmp_path / "lm"),
    }
    train(recipe, quiet=True)
    assert Tokenizers.load(tmp_path / "lm").target.fingerprint == Tokenizers.load(folders[0]).target.fingerprint
    assert Translator.load(folders[0], "cpu").translate(SOURCES, search=fused_with(tmp_path / "lm"))
    text = {"subword": {"kind": "bpe", "size": 300}}
    with pytest.raises(ConfigError, match="remove the text section"):
        open_job(tiny_run(tmp_path / "lm2", data=data, text=text))
