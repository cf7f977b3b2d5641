"""Embedding tables initialised with word vectors: their rows, scale and freezing, and conflicting settings."""

from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.batches.batch import collate
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.text.symbols import EOS, UNK
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers
from dragoman.training.optimisers.adam import AdamConfig
from dragoman.training.optimisers.average import ParameterAverage
from dragoman.training.run.snapshot import optimiser_tensors, restore_optimiser

SOURCES = ["The dog sees the cat .", "a cat sleeps ( on ) Monday ."] * 2
TARGETS = ["Der Hund sieht die Katze .", "eine Katze schläft am Montag ."] * 2
WIDTH = 8


def tokenizers_of(kind: str = "word", shared: bool = False, **settings: object) -> Tokenizers:
    subword = {"kind": kind, "min_frequency": 1, **settings} if kind != "bpe" else {"kind": kind, **settings}
    return train_tokenizers(TextConfig.model_validate({"subword": subword, "shared": shared}), SOURCES, TARGETS)


def vectors(folder: Path, name: str, words: list[str], scale: float = 3.0, width: int = WIDTH) -> dict[str, np.ndarray]:
    """Write random vectors for the words, and return them."""
    draw = np.random.default_rng(len(name))
    made = {word: (draw.normal(size=width) * scale).astype(np.float32) for word in words}
    lines = (f"{word} {' '.join(map(repr, vector.tolist()))}\n" for word, vector in made.items())
    (folder / name).write_text("".join(lines), encoding="utf-8")
    return made


def settings(**embeddings: object) -> dict[str, Any]:
    stack = {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 16}
    ties = {"tie_embeddings": False, "tie_projection": False}
    return {"preset": None, "width": WIDTH, "encoder": stack, "decoder": stack, **ties, "embeddings": embeddings}


def built(config: ModelConfig, tokenizers: Tokenizers) -> Seq2Seq:
    torch.manual_seed(3)
    return config.build(tokenizers.source.size, tokenizers.target.size)


def tables(model: Seq2Seq) -> tuple[torch.nn.Embedding, torch.nn.Embedding]:
    return model.encoder.embedding.tokens, model.decoder.embedding.tokens


def test_entries_get_their_words_vectors_at_the_scale_of_random_ones(tmp_path: Path) -> None:
    tokenizers = tokenizers_of()
    words = ["dog", "the", "cat", ".", "(", "Monday", "on", "zebra"]
    made = vectors(tmp_path, "en", words)
    config = ModelConfig.model_validate(settings(source=tmp_path / "en"))
    model, drawn = built(config, tokenizers), built(config, tokenizers)
    shares = config.embeddings.fill(*tables(model), tokenizers)
    entries = tokenizers.source.whole_words()
    filled = {row: word if word in made else word.lower() for row, word in enumerate(entries) if word is not None}
    filled = {row: word for row, word in filled.items() if word in made}
    assert sorted(filled.values()) == sorted(["The".lower(), *set(words) - {"zebra"}])
    table, before = tables(model)[0].weight, tables(drawn)[0].weight
    raw = np.stack([made[word] for word in filled.values()])
    expected = raw / sqrt(float((raw.astype(np.float64) ** 2).sum(1).mean()))
    np.testing.assert_allclose(table[list(filled)].detach().numpy(), expected, rtol=1e-6)
    assert float(table[list(filled)].detach().square().sum(1).mean()) == pytest.approx(1, rel=1e-5)
    rest = [row for row in range(len(entries)) if row not in filled]
    assert torch.equal(table[rest], before[rest])
    assert set(range(4)) <= set(rest)
    assert torch.equal(tables(model)[1].weight, tables(drawn)[1].weight)
    assert shares == {"source": round(len(filled) / (tokenizers.source.size - 4), 4)}


def test_a_words_own_case_comes_first_then_the_lower_one(tmp_path: Path) -> None:
    tokenizers = tokenizers_of()
    made = vectors(tmp_path, "de", ["der", "Hund", "hund", "katze", "Montag"])
    config = ModelConfig.model_validate(settings(target=tmp_path / "de"))
    model = built(config, tokenizers)
    config.embeddings.fill(*tables(model), tokenizers)
    table, entries = tables(model)[1].weight.detach(), tokenizers.target.whole_words()
    for entry, used in (("Der", "der"), ("Hund", "Hund"), ("Katze", "katze"), ("Montag", "Montag")):
        row = table[entries.index(entry)].numpy()
        assert np.dot(row, made[used]) == pytest.approx(np.linalg.norm(row) * np.linalg.norm(made[used]), rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "entries", "some"),
    [
        ("bpe", {"dog", "cat", "."}, {"size": 330}),
        ("wordpiece", {"dog", "cat", "."}, {"size": 120}),
        ("unigram", {"d", "."}, {"size": 300}),
        ("subword_nmt", {"cat", ".", "D@@"}, {"merges": 60}),
        ("character", {"d", "."}, {}),
    ],
)
def test_only_whole_words_among_subwords_have_a_vector(
    tmp_path: Path, kind: str, entries: set[str], some: dict[str, int]
) -> None:
    subword = {"kind": kind, **some}
    tokenizers = train_tokenizers(TextConfig.model_validate({"subword": subword}), SOURCES * 3, TARGETS * 3)
    vectors(tmp_path, "v", ["dog", "cat", ".", "D@@", "d", "og", "se"])
    config = ModelConfig.model_validate({**settings(source=tmp_path / "v"), "tie_embeddings": True})
    model, drawn = built(config, tokenizers), built(config, tokenizers)
    config.embeddings.fill(*tables(model), tokenizers)
    changed = (tables(model)[0].weight != tables(drawn)[0].weight).any(1).nonzero().flatten().tolist()
    found = {tokenizers.source.whole_words()[row] for row in changed}
    assert entries <= found
    assert found.isdisjoint({"og", "se"}) or kind == "character"


def test_the_source_takes_precedence_in_a_shared_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizers = tokenizers_of(shared=True)
    one, two = vectors(tmp_path, "en", ["cat", "."]), vectors(tmp_path, "german", [".", "Hund", "Katze"])
    config = ModelConfig.model_validate(
        {**settings(source=tmp_path / "en", target=tmp_path / "german"), "tie_embeddings": True}
    )
    model = built(config, tokenizers)
    shares = config.embeddings.fill(*tables(model), tokenizers)
    table, entries = tables(model)[0].weight.detach(), tokenizers.source.whole_words()
    for word, made in ((".", one), ("cat", one), ("Hund", two), ("Katze", two)):
        row = table[entries.index(word)].numpy()
        assert np.dot(row, made[word]) == pytest.approx(np.linalg.norm(row) * np.linalg.norm(made[word]), rel=1e-5)
    ordinary = tokenizers.source.size - 4
    full_stops = entries.count(".")
    assert shares == {"source": round((1 + full_stops) / ordinary, 4), "target": round(2 / ordinary, 4)}
    said = capsys.readouterr().err
    assert f"{1 + full_stops} of {ordinary} entries of the source vocabulary" in said
    assert f"2 of {ordinary} entries of the target vocabulary ({2 / ordinary:.1%}) are initialised from" in said


def test_files_that_do_not_fit_the_model_or_the_language_are_refused(tmp_path: Path) -> None:
    tokenizers = tokenizers_of()
    vectors(tmp_path, "wide", ["cat"], width=12)
    vectors(tmp_path, "foreign", ["hase", "igel"])
    (tmp_path / "zero").write_text(f"cat{' 0' * WIDTH}\ndog{' 0' * WIDTH}\n")
    wide = ModelConfig.model_validate(settings(source=tmp_path / "wide"))
    with pytest.raises(ConfigError, match="model.embeddings.source: .*width 12, but model.width is 8: set"):
        wide.embeddings.check(8)
    wide.embeddings.check(12)
    wide.embeddings.check(None)
    for name, message in (
        ("foreign", "no vector for any entry of the source vocabulary"),
        ("zero", "are zero"),
        ("none", "no file"),
    ):
        config = ModelConfig.model_validate(settings(source=tmp_path / name))
        with pytest.raises(DataError, match=message):
            config.embeddings.fill(*tables(built(config, tokenizers)), tokenizers)


def test_conflicting_settings_are_refused_before_any_file_is_read() -> None:
    with pytest.raises(ValidationError, match="frozen=true without a file"):
        ModelConfig.model_validate(settings(frozen=True))
    tied = {**settings(target="nowhere", frozen=True), "tie_projection": True}
    with pytest.raises(ValidationError, match="set model.tie_projection=false"):
        ModelConfig.model_validate(tied)
    with pytest.raises(ValidationError, match="set model.tie_projection=false"):
        ModelConfig.model_validate({**tied, "tie_embeddings": True, "embeddings": {"source": "x", "frozen": True}})
    ModelConfig.model_validate({**tied, "embeddings": {"source": "nowhere", "frozen": True}})
    with pytest.raises(ConfigError, match="remove model.embeddings.source"):
        ModelConfig.model_validate(settings(source="nowhere")).build(5, 9, vectors=True)


def test_a_preset_chosen_by_the_corpus_keeps_the_embeddings() -> None:
    config = ModelConfig.model_validate({"embeddings": {"source": "en.vec"}, "width": 104})
    assert config.preset == "auto"
    resolved = config.resolve(1000)
    assert resolved.preset == "tiny"
    assert (resolved.width, resolved.embeddings.source) == (104, Path("en.vec"))


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_frozen_tables_stay_bit_for_bit_and_have_no_optimiser_state(tmp_path: Path, decay: float) -> None:
    tokenizers = tokenizers_of()
    vectors(tmp_path, "en", ["cat", "dog", "."])
    config = ModelConfig.model_validate(settings(source=tmp_path / "en", frozen=True))
    model = built(config, tokenizers)
    config.embeddings.fill(*tables(model), tokenizers)
    optimiser = AdamConfig(weight_decay=decay).build(model, torch.float32)
    average = ParameterAverage(model, 0.9)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    batch = collate(tokenizers.source.encode_batch(SOURCES[:2]), tokenizers.target.encode_batch(TARGETS[:2]), [0, 1])
    for group in optimiser.param_groups:
        group["lr"] = 0.1
    for _ in range(3):
        model.train()
        logits = model(batch.source, batch.source_mask, batch.inputs).logits()
        torch.nn.functional.cross_entropy(logits[batch.target_mask], batch.labels[batch.target_mask]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        average.update(1)
    after = dict(model.named_parameters())
    frozen = "encoder.embedding.tokens.weight"
    assert [name for name in before if torch.equal(before[name], after[name])] == [frozen]
    assert torch.equal(average.shadow[frozen], before[frozen])
    tensors = optimiser_tensors(optimiser, model)
    assert {name.rpartition("/")[0] for name in tensors} == set(before) - {frozen}
    fresh = AdamConfig(weight_decay=decay).build(model, torch.float32)
    restore_optimiser(fresh, model, tensors)
    assert all(torch.equal(value, tensors[name]) for name, value in optimiser_tensors(fresh, model).items())


def test_without_frozen_everything_learns(tmp_path: Path) -> None:
    config = ModelConfig.model_validate(settings(source=tmp_path / "en", target=tmp_path / "de"))
    assert all(parameter.requires_grad for parameter in built(config, tokenizers_of()).parameters())


def test_unknown_and_end_have_no_word(tmp_path: Path) -> None:
    """Files for subword text contain <unk> and </s>; these are the words of that text, not our symbols."""
    tokenizers = tokenizers_of()
    vectors(tmp_path, "en", ["<unk>", "</s>", "cat"])
    config = ModelConfig.model_validate(settings(source=tmp_path / "en"))
    model, drawn = built(config, tokenizers), built(config, tokenizers)
    config.embeddings.fill(*tables(model), tokenizers)
    assert torch.equal(tables(model)[0].weight[[UNK, EOS]], tables(drawn)[0].weight[[UNK, EOS]])
