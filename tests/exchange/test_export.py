"""`dragoman export --to ctranslate2`: the folder, its uses, and refusals before anything is written."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_model import SOURCES, tiny_config, write_tiny_model

from dragoman import Translator
from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.settings.config import Config
from dragoman.checkpoint.folder import load_model_folder
from dragoman.cli.main import main
from dragoman.exchange.ctranslate2 import expressible
from dragoman.exchange.ctranslate2.folder import export
from dragoman.exchange.ctranslate2.specification import token_names
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.text.vocabularies.character import CharacterConfig

ctranslate2 = pytest.importorskip("ctranslate2")
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    write_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def exported(model: Path) -> Path:
    out = model.parent / "exported"
    assert main(["export", str(model), "--to", "ctranslate2", "--out", str(out)]) == 0
    return out


def test_the_folder_translates_text(model: Path, exported: Path) -> None:
    """Greedy translations are those of the model folder; beam search is CTranslate2's own (tests/engines)."""
    reference, translator = Translator.load(model), Translator.load(exported)
    assert translator.translate(SOURCES, beam=1) == reference.translate(SOURCES, beam=1)
    found = translator.translate_nbest(SOURCES, translator.request(beam=3, nbest=2))
    assert [len(line) for line in found] == [2] * len(SOURCES)
    assert all(one.score >= other.score for one, other in found)
    assert translator.meta == reference.meta
    one, other = (each.score(SOURCES, SOURCES[::-1]) for each in (reference, translator))
    assert [each.log_probability for each in one] == pytest.approx([each.log_probability for each in other], abs=1e-3)


def test_the_folder_is_evaluated_and_scores(
    model: Path, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text"
    text.write_text("".join(f"{line}\n" for line in SOURCES), encoding="utf-8")
    said = []
    for folder in (model, exported):
        assert (
            main(
                [
                    "evaluate",
                    str(folder),
                    "--source",
                    str(text),
                    "--reference",
                    str(text),
                    "--beam",
                    "1",
                    "--no-verdict",
                ]
            )
            == 0
        )
        evaluated = capsys.readouterr().out.replace(str(folder), "")
        assert main(["score", str(folder), "--source", str(text), "--target", str(text)]) == 0
        said.append((evaluated, [float(line) for line in capsys.readouterr().out.split()]))
    assert said[0][0] == said[1][0]
    assert said[0][1] == pytest.approx(said[1][1], abs=1e-3)


def test_plain_ctranslate2_translates_pieces(model: Path, exported: Path) -> None:
    """As the README of the folder says: it reads and writes pieces, and adds the ends itself."""
    tokenizer = Translator.load(model).tokenizers.source
    vocabulary = json.loads((exported / "shared_vocabulary.json").read_text("utf-8"))
    assert vocabulary == list(tokenizer.symbols)
    pieces = [[vocabulary[number] for number in ids] for ids in tokenizer.encode_batch(SOURCES)]
    plain = ctranslate2.Translator(str(exported), compute_type="float32")
    results = plain.translate_batch(pieces, beam_size=1, max_decoding_length=12)
    found = [tokenizer.decode(map(vocabulary.index, result.hypotheses[0])) for result in results]
    expected = Translator.load(model).translate(SOURCES, beam=1)
    assert all(one.startswith(other) or other.startswith(one) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("quantization", ["int8", "int16", "bfloat16", "float16", "int8_float32"])
def test_weights_are_stored_with_the_quantization(model: Path, tmp_path: Path, quantization: str) -> None:
    arguments = ["export", str(model), "--to", "ctranslate2", "--out", str(tmp_path / "x")]
    assert main([*arguments, "--quantization", quantization]) == 0
    assert quantization in (tmp_path / "x" / "README.md").read_text("utf-8")
    assert len(Translator.load(tmp_path / "x").translate(SOURCES, beam=1)) == len(SOURCES)


def refused(**changes: Any) -> str:
    with pytest.raises(ModelError) as found:
        expressible.check_expressible(tiny_config(**changes))
    return str(found.value)


def test_all_refused_parts_are_named() -> None:
    stack = {"layers": 1, "heads": 2, "feedforward": 16}
    rms = {"kind": "rms", "epsilon": 1e-6}
    message = refused(
        encoder={**stack, "residual": False, "normalisation": rms},
        decoder={**stack, "experts": {"count": 2}, "cross_attention": {"kind": "linear"}},
        positions={"kind": "alibi"},
    )
    for reason in (
        "model.encoder.residual=false",
        "model.decoder.experts={count: 2, ",
        "model.decoder.cross_attention.kind=linear",
        "model.positions.kind=alibi",
        "model.encoder.normalisation.epsilon=1e-06 and model.decoder.normalisation.epsilon=1e-05: CTranslate2 has a",
    ):
        assert reason in message
    assert "model.encoder.kind=recurrent" in refused(encoder={"kind": "recurrent"}, positions={"kind": "none"})


def test_a_setting_without_a_decision_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    decisions = {name: each for name, each in expressible.DECISIONS[ModelConfig].items() if name != "dropout"}
    monkeypatch.setitem(expressible.DECISIONS, ModelConfig, decisions)  # type: ignore[arg-type]
    assert "model.dropout={embedding: 0.3, " in refused()

    class NewConfig(Config):
        kind: str = "new"

    assert list(expressible._rejected_settings(NewConfig(), "model.encoder")) == ["model.encoder.kind=new"]


def test_vectors_are_refused() -> None:
    with pytest.raises(ModelError, match="text.vectors"):
        expressible.check_expressible(tiny_config(tie_embeddings=False), vectors=True)


def test_nothing_is_written_for_a_refused_model(model: Path, tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "alibi", config=tiny_config(positions={"kind": "alibi"}))
    loaded = load_model_folder(tmp_path / "alibi", CPU)
    with pytest.raises(ModelError, match="alibi"):
        export(loaded, tmp_path / "alibi", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="already exists"):
        export(load_model_folder(model, CPU), model, tmp_path / "alibi")


def test_damage_is_reported(exported: Path, tmp_path: Path) -> None:
    for name in ("config.yaml", "meta.json", "tokenizer.json", "config.json", "shared_vocabulary.json"):
        (tmp_path / name).write_bytes((exported / name).read_bytes())
    (tmp_path / "model.bin").write_bytes((exported / "model.bin").read_bytes()[:500])
    with pytest.raises(ModelError, match="CTranslate2 cannot load"):
        Translator.load(tmp_path)
    (tmp_path / "meta.json").unlink()
    with pytest.raises(ModelError, match="without meta.json"):
        Translator.load(tmp_path)


def test_equal_symbols_get_distinct_names() -> None:
    tokenizer = CharacterConfig(min_frequency=1).learn(["ab"]).with_tags(["bt"])
    tokenizer._symbols[4] = "<bt>"
    found = token_names(tokenizer)
    assert len(set(found)) == tokenizer.size
    assert found[-1] == f"<bt>#{tokenizer.size - 1}"
