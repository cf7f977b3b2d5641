"""n-gram language models from training to evaluation, generation, fusion and reranking."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_tokenizers, write_tiny_model

import dragoman
from dragoman.base.errors import ConfigError, ModelError
from dragoman.checkpoint.folder import load_model_folder
from dragoman.cli.main import main
from dragoman.data.batches.batch import pad
from dragoman.decode.forced import force
from dragoman.decode.rules.rule import Step
from dragoman.inference.translation.reranking.reranker import Reranker, RerankingConfig, read_reranking
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.registry import ngram_metrics
from dragoman.statistical.ngrams.word_fusion import WordFusion, WordScorer, divides_words
from dragoman.text.symbols import BOS, EOS, PAD, UNK
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.character import CharacterConfig
from dragoman.text.vocabularies.union import load_tokenizer
from dragoman.text.vocabularies.whitespace import WhitespaceConfig

WEIGHT = 0.7
HELD_OUT = ["ein Hund schlafen .", "zwei Katzen rennt"]


def recipe(tmp_path: Path, **changes: Any) -> dict[str, Any]:
    (tmp_path / "train.txt").write_text("\n".join(TARGETS) + "\n")
    (tmp_path / "valid.txt").write_text("\n".join(HELD_OUT) + "\n")
    data = {"train": {"text": str(tmp_path / "train.txt")}, "valid": {"text": str(tmp_path / "valid.txt")}}
    return {
        "task": {"kind": "ngram_language_model"},
        "data": {**data, **changes.pop("data", {})},
        "text": {"subword": {"kind": "whitespace"}},
        "model": {"order": 3},
        "out": str(tmp_path / "lm"),
        **changes,
    }


@pytest.fixture(scope="module")
def word_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    dragoman.train(recipe(folder), quiet=True)
    return folder / "lm"


def test_marks_of_sentence_boundaries_change_nothing(word_model: Path, tmp_path: Path) -> None:
    marked = recipe(tmp_path)
    for name in ("train.txt", "valid.txt"):
        lines = (tmp_path / name).read_text().splitlines()
        (tmp_path / name).write_text("".join(f"<s> {line} </s>\n" for line in lines))
    dragoman.train(marked, quiet=True)
    scores = [dragoman.score(folder, target=[*TARGETS, *HELD_OUT]) for folder in (tmp_path / "lm", word_model)]
    assert scores[0] == scores[1]


@pytest.fixture(scope="module")
def translation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translation") / "model"
    write_tiny_model(folder, config=tiny_config())
    return folder


def test_training_reports_the_perplexity_that_evaluate_prints(
    word_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = dragoman.train(recipe(tmp_path, out=str(tmp_path / "again")), quiet=True)
    assert (tmp_path / "again/model.safetensors").read_bytes() == (word_model / "model.safetensors").read_bytes()
    assert main(["evaluate", "perplexity", str(word_model), "--text", str(tmp_path / "valid.txt"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (text,) = printed["texts"]
    assert printed["vocabulary"]["kind"] == "whitespace"
    assert printed["vocabulary"]["size"] == load_tokenizer(word_model / "tokenizer.json").size
    assert text["per_token"] == pytest.approx(result.validation["perplexity"].value)
    assert text["unknown"] == 1
    scores = dragoman.score(word_model, HELD_OUT)
    tokenizer = load_tokenizer(word_model / "tokenizer.json")
    model = load_model_folder(word_model, torch.device("cpu")).model
    unknown = model(torch.tensor([[BOS, *tokenizer.encode("zwei")]])).logits()[0, -1, UNK]
    known = scores.total.log_probability - float(unknown)
    assert scores.total.unknown_log_probability == pytest.approx(float(unknown), rel=1e-6)
    assert text["per_known_token"] == pytest.approx(float(torch.tensor(-known / (text["tokens"] - 1)).exp()), rel=1e-6)
    assert main(["evaluate", "perplexity", str(word_model), "--text", str(tmp_path / "valid.txt")]) == 0
    assert "Without unknown tokens, the perplexity per token is" in capsys.readouterr().out


def test_generation_and_description(word_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generated = dragoman.LanguageModel.load(word_model).generate(["ein Hund", "zwei"], top_k=1, max_tokens=9)
    assert generated == [" rennt im Park .", " Hunde schlafen ."]
    assert main(["describe", str(word_model)]) == 0
    described = capsys.readouterr().out
    assert "an n-gram language model, estimated from counts" in described
    assert "Adam" not in described
    assert main(["describe", "task.kind=ngram_language_model", "model.order=2"]) == 0
    assert main(["translate", str(word_model)]) == 1
    assert "is an n-gram language model; it cannot translate" in capsys.readouterr().err


def test_settings_that_do_not_apply_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="counted once: leave out the weight"):
        dragoman.train(recipe(tmp_path, data={"train": {"text": str(tmp_path / "train.txt"), "weight": 2}}))
    (tmp_path / "lm").mkdir()
    (tmp_path / "lm/file").touch()
    with pytest.raises(ConfigError, match="already exists"):
        dragoman.train(recipe(tmp_path))
    with pytest.raises(ConfigError, match="no updates"):
        dragoman.train(recipe(tmp_path, out=str(tmp_path / "other")), resume=True)


def own_score(translator: Translator, source: str, ids: tuple[int, ...]) -> float:
    """Return log p of the translation model for the ids and the end of sentence."""
    model = translator.engine.model  # type: ignore[attr-defined]
    memory = model.encode(*pad([translator.tokenizers.source.encode(source)], after=(EOS,)))
    inputs, labels = torch.tensor([[BOS, *ids]]), torch.tensor([[*ids, EOS]])
    return float(force(model.decoder, memory, inputs, labels, torch.ones_like(labels, dtype=torch.bool)).sum())


SEARCH = {"length_penalty": "none", "length_factor": 0.0, "length_margin": 3}


def check_best_outputs(translation: Path, language_model: Path) -> None:
    """Compare the search with all outputs of at most two tokens, whose texts the language model scores as a whole."""
    translator = Translator.load(translation, "cpu", "torch")
    tokenizer = translator.tokenizers.target
    chosen = sorted({number for ids in tokenizer.encode_batch(TARGETS) for number in ids})[::3]
    outputs = [(), *((one, *rest) for one in chosen for rest in [(), *((two,) for two in chosen)])]
    forbid = [PAD, BOS, UNK, *(token for token in range(4, tokenizer.size) if token not in chosen)]
    fusion = {"language_model": str(language_model), "weight": WEIGHT}
    request = translator.request(nbest=3, beam=300, search={**SEARCH, "forbid": forbid, "fusion": fusion})
    model = load_model_folder(language_model, torch.device("cpu"))
    is_same = model.tokenizers.target.fingerprint == tokenizer.fingerprint
    texts = [tokenizer.decode(ids) for ids in outputs]
    fluency = [each.log_probability for each in dragoman.score(language_model, texts).each]
    if is_same:  # other divisions of a text than the tokenizer's have other scores
        inputs = [torch.tensor([[BOS, *ids]]) for ids in outputs]
        logits = [model.model(each).logits()[0].log_softmax(1) for each in inputs]
        fluency = [
            float(rows.gather(1, torch.tensor([*ids, EOS]).unsqueeze(1)).sum())
            for rows, ids in zip(logits, outputs, strict=True)
        ]
    for source, found in zip(SOURCES, translator.translate_nbest(SOURCES, request), strict=True):
        own = [own_score(translator, source, ids) for ids in outputs]
        fused = {ids: one + WEIGHT * other for ids, one, other in zip(outputs, own, fluency, strict=True)}
        best = sorted(outputs, key=lambda ids: -fused[ids])[:3]
        assert [each.ids for each in found] == best
        assert [each.score for each in found] == pytest.approx([fused[ids] for ids in best], abs=1e-4)


def test_fusion_with_the_target_vocabulary_adds_the_score_of_every_token(translation: Path, tmp_path: Path) -> None:
    data = {"vocabulary_of": str(translation)}
    settings = {key: value for key, value in recipe(tmp_path, data=data).items() if key != "text"}
    dragoman.train(settings, quiet=True)
    assert Tokenizers.load(tmp_path / "lm").target.fingerprint == tiny_tokenizers().target.fingerprint
    check_best_outputs(translation, tmp_path / "lm")


def test_a_word_model_is_fused_with_a_decoder_of_pieces_at_the_ends_of_words(
    translation: Path, word_model: Path
) -> None:
    check_best_outputs(translation, word_model)


def test_word_fusion_reads_prefixes_and_words_of_several_pieces(word_model: Path) -> None:
    target, text = tiny_tokenizers().target, "zwei Hunde schlafen ."
    ids = target.encode(text)
    model = load_model_folder(word_model, torch.device("cpu"))
    rule = WordFusion(WordScorer(model.model, model.tokenizers.target, target), [WEIGHT])
    prompts: Any = ["one sentence"]
    single, total = rule.start(prompts), 0.0
    for token, following in pairwise([BOS, *ids, EOS]):
        step = Step(np.array([0]), np.array([1]), torch.tensor([[token]]), None)  # type: ignore[arg-type]
        single = rule.read(single, step)
        total += float(rule.add(step, single)[0, following])
    whole = Step(np.array([0]), np.array([1]), torch.tensor([[BOS, *ids]]), None)  # type: ignore[arg-type]
    state = rule.read(rule.start(prompts), whole)
    assert torch.equal(rule.add(whole, state), rule.add(whole, single))
    assert total == pytest.approx(WEIGHT * dragoman.score(word_model, [text]).total.log_probability, rel=1e-6)


def test_a_word_model_is_not_fused_without_word_boundaries(word_model: Path, tmp_path: Path) -> None:
    assert divides_words(tiny_tokenizers().target)
    assert not divides_words(CharacterConfig(min_frequency=1).learn(TARGETS))


def test_a_reranker_uses_the_model(translation: Path, word_model: Path) -> None:
    translator = Translator.load(translation, "cpu", "torch")
    config = RerankingConfig.model_validate(
        {"nbest": 3, "model": 0.0, "language_model": {"folder": str(word_model), "weight": 1.0}}
    )
    lists = translator.translate_nbest(SOURCES, translator.request(nbest=3, beam=3, search=SEARCH))
    chosen = Reranker.load(config, translator, "cpu").choose(SOURCES, lists)
    for before, after in zip(lists, chosen, strict=True):
        scores = dragoman.score(word_model, [each.text for each in after]).each
        assert [each.log_probability for each in scores] == sorted(
            (each.log_probability for each in scores), reverse=True
        )
        assert {each.ids for each in before} == {each.ids for each in after}


def test_reranking_is_tuned_with_the_model(translation: Path, word_model: Path, tmp_path: Path) -> None:
    for side, texts in (("source", SOURCES), ("reference", TARGETS)):
        (tmp_path / side).write_text("\n".join(texts) + "\n")
    files = [f"--{name}={tmp_path / name}" for name in ("source", "reference", "out")]
    options = [f"--language-model={word_model}", "--nbest=3", "--restarts=2", "--metric=chrf", "--quiet"]
    assert main(["tune", str(translation), *files, *options]) == 0
    tuned = read_reranking(tmp_path / "out")
    assert tuned.language_model is not None and tuned.language_model.folder == word_model
    dragoman.translate_file(translation, tmp_path / "source", tmp_path / "target", rerank=tmp_path / "out", quiet=True)
    chosen = (tmp_path / "target").read_text().split("\n")[:-1]
    assert tuned.tuned is not None and tuned.tuned.after >= tuned.tuned.before
    assert ngram_metrics()["chrf"].score(chosen, TARGETS).value == pytest.approx(tuned.tuned.after)


def test_words_are_separated_by_spaces_only(tmp_path: Path) -> None:
    tokenizer = WhitespaceConfig().learn(["a b\u00a0c  a\t<unk> </s>", "b"])
    assert tokenizer.symbols[4:] == ("a", "b", "b\u00a0c")
    assert tokenizer.encode(" a  b\n<unk> </s> x") == [4, 5, UNK, UNK, UNK]
    assert tokenizer.decode([4, 5]) == "a b"
    assert tokenizer.words("a  b") == ([0, 1], [" a", " b"])
    tokenizer.save(tmp_path / "tokenizer.json")
    assert load_tokenizer(tmp_path / "tokenizer.json").symbols == tokenizer.symbols
    (tmp_path / "tokenizer.json").write_text('{"kind": "whitespace", "words": ["a", "a"]}')
    with pytest.raises(ModelError, match="damaged"):
        load_tokenizer(tmp_path / "tokenizer.json")
    assert WhitespaceConfig(size=5, min_frequency=2).learn(["b a b a c"]).symbols[4:] == ("a",)
