"""Feature vectors as the source: lines, batches, shards, every encoder, and errors that name file and line."""

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from random_parameters import perturb
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError, ModelError
from dragoman.base.settings.load import parse_settings
from dragoman.cli.main import main
from dragoman.data.batches.batch import collate, pad
from dragoman.data.cleaning.config import CleaningConfig
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.preparation.prepare import prepare
from dragoman.models.description.footprint import measure_footprint
from dragoman.models.families.union import EncoderConfig
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.tasks.translation.config import TranslationRun
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.text.vocabularies.feature_vectors import VectorError, VectorSequences

WIDTH, SIZE = 3, 12
ENCODERS = sorted({each.model_fields["kind"].default for each in get_args(get_args(EncoderConfig)[0])})


def vectors(*lengths: int) -> list[np.ndarray]:
    draw = np.random.default_rng(4)
    return [draw.normal(size=(length, WIDTH)).astype(np.float32) for length in lengths]


def test_a_line_is_a_list_of_vectors() -> None:
    reader = VectorSequences(2)
    found = reader.encode("[[0.5, -1], [2e3, 3]]")
    assert found.dtype == np.float32  # type: ignore[attr-defined]
    assert found.tolist() == [[0.5, -1.0], [2000.0, 3.0]]  # type: ignore[attr-defined]
    exact = vectors(4)[0][:, :2]
    assert np.array_equal(reader.encode(json.dumps(exact.tolist())), exact)
    assert np.array_equal(reader.encode(reader.decode(exact)), exact)
    assert reader.pieces(found) == ["1", "2"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a dog runs", "not valid JSON"),
        ("", "not valid JSON"),
        ("[[1, 2], [3, NaN]]", "NaN is not a number"),
        ("[[1, -Infinity]]", "-Infinity is not a number"),
        ("[[1, 2], [3]]", "vector 2 has 1 numbers, but text.vectors.width is 2"),
        ("[[1, 2, 3]]", "vector 1 has 3 numbers"),
        ("[1, 2]", "not a list of vectors"),
        ("[]", "not a list of vectors"),
        ('{"a": 1}', "not a list of vectors"),
        ('[["1", "2"]]', "values that are not numbers"),
        ("[[true, false]]", "values that are not numbers"),
        ("[[null, 1]]", "values that are not numbers"),
        ("[[[1], [2]]]", "values that are not numbers"),
        ("[[1e39, 1]]", "too large"),
        ("[[1e999, 1]]", "too large"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_invalid_lines_are_rejected_with_their_number(line: str, reason: str) -> None:
    with pytest.raises(VectorError, match="line 2: ") as error:
        VectorSequences(2).encode_batch(["[[1, 2]]", line])
    assert reason in str(error.value)
    assert str(error.value.with_file_name("regions.jsonl")).startswith("regions.jsonl, line 2: ")


def test_batches_end_with_a_vector_of_zeros() -> None:
    sources = vectors(2, 4)
    batch = collate(sources, [[5], [6, 7]], [0, 1])
    assert batch.source.shape == (2, 5, WIDTH)
    assert batch.source.dtype == torch.float32
    assert batch.source_mask.sum(1).tolist() == [3, 5]
    assert np.array_equal(batch.source[1, :4].numpy(), sources[1])
    assert not batch.source[0, 2:].any()
    first, second = batch.split(2)
    assert first.source.shape == (1, 3, WIDTH)
    assert torch.equal(second.source, batch.source[1:])


def model(kind: str) -> Seq2Seq:
    torch.manual_seed(6)
    sizes = {"layers": 1, "heads": 2, "feedforward": 12}
    fields = next(
        each.model_fields for each in get_args(get_args(EncoderConfig)[0]) if each.model_fields["kind"].default == kind
    )
    encoder = {"kind": kind, **{name: value for name, value in sizes.items() if name in fields}}
    settings = {"preset": None, "width": 8, "encoder": encoder, "decoder": sizes, "tie_embeddings": False}
    built = ModelConfig.model_validate(settings).build(WIDTH, SIZE, vectors=True).eval()
    return perturb(built)


@pytest.mark.parametrize("kind", ENCODERS)
@torch.no_grad()
def test_every_encoder_reads_vectors_and_ignores_padding(kind: str) -> None:
    net, sources = model(kind), vectors(3, 1, 5)
    inputs = torch.randint(4, SIZE, (3, 4))

    def logits(tokens: Tensor, keep: Tensor, rows: slice) -> Tensor:
        return net(tokens, keep, inputs[rows]).logits()

    source, keep = pad(sources, after=(2,))
    together = logits(source, keep, slice(0, 3))
    rubbish = torch.where(keep[..., None], source, 7.0)
    wider = torch.nn.functional.pad(rubbish, (0, 0, 0, 2), value=9.0), torch.nn.functional.pad(keep, (0, 2))
    torch.testing.assert_close(logits(*wider, slice(0, 3)), together, rtol=1e-4, atol=1e-4)
    for row, alone in enumerate(sources):
        one = logits(*pad([alone], after=(2,)), slice(row, row + 1))
        torch.testing.assert_close(one[0], together[row], rtol=1e-4, atol=1e-4)
    changed = source.clone()
    changed[0, 1, 2] += 0.5
    assert not torch.allclose(logits(changed, keep, slice(0, 3))[0], together[0], atol=1e-4)


def test_the_projection_is_the_formula_and_memory_can_be_estimated() -> None:
    net = model("transformer")
    embedding = net.encoder.embedding
    source = torch.from_numpy(vectors(4)[0])[None]
    expected = (source @ embedding.tokens.weight.T + embedding.tokens.bias) * 8**0.5
    torch.testing.assert_close(embedding.tokens(source) * embedding.scale, expected)
    torch.manual_seed(1)
    fresh = (
        ModelConfig.model_validate({"preset": "tiny", "tie_embeddings": False})
        .build(64, SIZE, vectors=True)
        .encoder.embedding
    )
    draws = torch.randn(1, 500, 64)
    assert float((fresh.tokens(draws) * fresh.scale).detach().std()) == pytest.approx(1, abs=0.05)
    assert measure_footprint(net, 20, training=True).training[-1] >= 0


def test_tied_embeddings_and_a_shared_vocabulary_are_rejected() -> None:
    with pytest.raises(ConfigError, match="tie_embeddings=false"):
        ModelConfig.model_validate({"preset": "tiny", "tie_embeddings": True}).build(WIDTH, SIZE, vectors=True)
    with pytest.raises(ConfigError, match="no vocabulary to share"):
        parse_settings({"vectors": {"width": 2}, "shared": True}, TextConfig, "here")
    corpus = {"source": "a", "target": "b"}
    config = TranslationRun.model_validate(
        {"data": {"train": corpus, "valid": corpus}, "text": {"vectors": {"width": 2}}, "out": "run"}
    )
    assert not config.text.shared
    assert not config.model.tie_embeddings


def write(folder: Path, sources: list[Any], targets: list[str]) -> CorpusConfig:
    lines = [line if isinstance(line, str) else json.dumps(line.tolist()) for line in sources]
    (folder / "a.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "b.txt").write_text("".join(f"{line}\n" for line in targets), encoding="utf-8")
    return CorpusConfig(source=folder / "a.jsonl", target=folder / "b.txt")


TEXT = TextConfig.model_validate({"vectors": {"width": WIDTH}, "subword": {"kind": "character"}})


def test_shards_contain_the_exact_numbers_and_cleaning_checks_the_target_only(tmp_path: Path) -> None:
    """A line of vectors is long, has no letters, and may have the same target as another."""
    sources = vectors(90, 1, 2, 2)
    corpus = write(tmp_path, [*sources, sources[1], ""], ["ab", "ba", "ba", "a" * 3000, "ba", "b"])
    prepared = prepare(corpus, CleaningConfig(), TEXT, tmp_path / "prepared")
    assert prepared.reports[0].kept == 3
    assert {name: lines.tolist() for name, lines in prepared.reports[0].dropped.items()} == {
        "max_characters": [4],
        "duplicates": [5],
        "empty": [6],
    }
    assert prepared.dataset.lengths.tolist() == [[90, 2], [1, 2], [2, 2]]
    for row, expected in enumerate(sources[:3]):
        found, _ = prepared.dataset[row]
        assert found.dtype == np.float32
        assert np.array_equal(found, expected)
    again = prepare(corpus, CleaningConfig(), TEXT, tmp_path / "prepared")
    assert again.tokenizers.reads_vectors
    assert again.tokenizers.source.size == WIDTH
    assert again.dataset.fingerprint == prepared.dataset.fingerprint


def test_a_bad_line_of_a_corpus_is_named(tmp_path: Path) -> None:
    corpus = write(tmp_path, [*vectors(2), "", "[[1, 2, 3], [4, 5]]"], ["ab", "ba", "a"])
    with pytest.raises(DataError) as error:
        prepare(corpus, CleaningConfig(), TEXT, tmp_path / "prepared")
    assert str(error.value).startswith(f"{corpus.source}, line 3: vector 2 has 2 numbers")


def test_a_damaged_description_is_rejected(tmp_path: Path) -> None:
    reader = VectorSequences(WIDTH)
    tokenizers = Tokenizers(reader, TEXT.subword.learn(["ab"]))
    tokenizers.save(tmp_path)
    assert Tokenizers.load(tmp_path).source.size == WIDTH
    assert Tokenizers.load(tmp_path).fingerprint == tokenizers.fingerprint
    (tmp_path / "tokenizer.source.json").write_text('{"kind": "vectors", "width": 0}')
    with pytest.raises(ModelError, match="width is 0"):
        Tokenizers.load(tmp_path)


def test_a_bad_validation_line_is_named_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path, vectors(2, 3, 4), ["ab", "ba", "aab"])
    (tmp_path / "bad.jsonl").write_text("[[1, 2, 3]]\nnot json\n[[1, 2, 3]]\n")
    settings = [f"text.vectors.width={WIDTH}", "text.subword.kind=character", "train.max_steps=1", "model.width=8"]
    files = ["--source", str(good.source), "--target", str(good.target)]
    valid = ["--valid-source", str(tmp_path / "bad.jsonl"), "--valid-target", str(good.target)]
    assert main(["train", *settings, *files, *valid, "--out", str(tmp_path / "run")]) == 1
    assert f"{tmp_path / 'bad.jsonl'}, line 2: not valid JSON" in " ".join(capsys.readouterr().err.split())
