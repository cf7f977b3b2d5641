"""Ensembles: the mean of probabilities for any families, and refused combinations."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_model, tiny_tokenizers, write_tiny_model
from torch.testing import assert_close

from dragoman import inspect, score, translate_file
from dragoman.base.errors import ConfigError, ModelError
from dragoman.cli.main import main
from dragoman.data.batches.batch import pad
from dragoman.decode.prompts import Prompts
from dragoman.decode.search import SearchConfig, search
from dragoman.engines.engine import AttentionEngine
from dragoman.engines.torch.engine import TorchEngine
from dragoman.inference.translation.translator import Translator
from dragoman.models.interface import SourceModel
from dragoman.models.kinds.ensemble import Ensemble
from dragoman.text.symbols import BOS, EOS, UNK
from dragoman.text.tokenizers import TextConfig, train_tokenizers

RECURRENT = {"kind": "recurrent", "layers": 1}
RNN = tiny_config(encoder=RECURRENT, decoder=RECURRENT, positions=None)
TEXTS = [*SOURCES, "", "dogs run and run in the park with the man .", "a"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two Transformers and a recurrent model."""
    base = tmp_path_factory.mktemp("members")
    for name, seed, config in (("one", 1, None), ("two", 2, None), ("rnn", 3, RNN)):
        write_tiny_model(base / name, seed=seed, config=config)
    return [base / "one", base / "two", base / "rnn"]


def sharpened(model: SourceModel) -> SourceModel:
    """Sharpen the model: random parameters of a tiny model hardly prefer any token."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    return model.eval()


@torch.inference_mode()
def test_the_mean_of_probabilities_at_once_and_step_by_step_in_a_beam() -> None:
    tokenizers = tiny_tokenizers()
    members = [sharpened(tiny_model(config, tokenizers, seed)) for seed, config in enumerate((tiny_config(), RNN), 1)]
    tokens, keep = pad([tokenizers.source.encode(text) for text in SOURCES], after=(EOS,))
    inputs, _ = pad([[BOS, *tokenizers.target.encode(text)] for text in TARGETS], after=())
    ensemble = Ensemble(members)
    whole = ensemble(tokens, keep, inputs).logits()
    expected = torch.stack([each(tokens, keep, inputs).logits().softmax(-1) for each in members]).mean(0)
    assert_close(whole.exp(), expected)
    state = ensemble.decoder.start(ensemble.encode(tokens, keep))
    for column in range(3):
        output, state = ensemble.decoder.step(inputs[:, column : column + 1], state)
        assert_close(output.last_logits().exp(), expected[:, column])
    rows = torch.tensor([2, 2, 0, 0])  # a beam of two, after a sentence has left
    output, _ = ensemble.decoder.step(inputs[rows, 3:4], state.reorder(rows, 2))
    assert_close(output.last_logits().exp(), expected[rows, 3])


@pytest.mark.parametrize("settings", [{"beam": 1}, {"beam": 4, "nbest": 3}, {"beam": 3, "coverage_penalty": 0.2}])
def test_an_ensemble_of_a_model_with_itself_equals_the_model(folders: list[Path], settings: dict[str, float]) -> None:
    once, twice = Translator.load(folders[0], "cpu", "torch"), Translator.load([folders[0]] * 2, "cpu")
    request = once.request(**settings)  # type: ignore[arg-type]
    for one, two in zip(once.translate_nbest(TEXTS, request), twice.translate_nbest(TEXTS, request), strict=True):
        assert [each.ids for each in one] == [each.ids for each in two]
        np.testing.assert_allclose([each.score for each in one], [each.score for each in two], rtol=1e-4, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize("second", [tiny_config(), RNN], ids=["transformers", "mixed"])
def test_the_search_finds_what_reading_each_hypothesis_with_both_models_finds(second: object) -> None:
    tokenizers = tiny_tokenizers()
    members = [sharpened(tiny_model(config, tokenizers, seed)) for seed, config in ((5, tiny_config()), (6, second))]  # type: ignore[arg-type]
    source = tokenizers.source.encode(SOURCES[1])
    tokens, keep = pad([source], after=(EOS,))
    config = SearchConfig(beam=3, nbest=3, length_factor=0.0, length_margin=6)
    ensemble = Ensemble(members)
    memory = ensemble.encode(tokens, keep)
    (found,) = search(ensemble.decoder, Prompts.of(ensemble.decoder, memory, config), config)

    def following(written: list[int]) -> torch.Tensor:
        inputs = torch.tensor([[BOS, *written]])
        return torch.stack([each(tokens, keep, inputs).logits()[0, -1].softmax(0) for each in members]).mean(0).log()

    live, ended = [([], 0.0)], []  # type: ignore[var-annotated]
    for _ in range(6):
        longer = []
        for written, total in live:
            values = following(written)
            longer += [
                ([*written, token], total + float(values[token]))
                for token in range(len(values))
                if token not in config.forbid
            ]
        longer = sorted(longer, key=lambda each: -each[1])[:6]
        ended += [each for each in longer[:3] if each[0][-1] == EOS]
        live = [each for each in longer if each[0][-1] != EOS][:3]
    scored = [(tuple(each[:-1]), total / config.length_penalty.divisor(len(each))) for each, total in ended]
    rest = [(tuple(each), total / config.length_penalty.divisor(len(each))) for each, total in live]
    expected = (sorted(scored, key=lambda each: -each[1]) + sorted(rest, key=lambda each: -each[1]))[:3]
    assert [each.tokens for each in found] == [each for each, _ in expected]
    np.testing.assert_allclose([each.score for each in found], [score for _, score in expected], atol=1e-4)


@pytest.mark.slow
def test_batches_and_order_change_nothing(folders: list[Path]) -> None:
    translator = Translator.load(folders, "cpu")
    request = translator.request(beam=3, nbest=2)
    alone = [translator.translate_nbest([text], request)[0] for text in TEXTS]
    for batch_size in (2, 64):
        together = translator.translate_nbest(TEXTS[::-1], request, batch_size)[::-1]
        assert [[each.ids for each in one] for one in together] == [[each.ids for each in one] for one in alone]
    assert together[3][0].text == ""


def test_scores_are_those_of_the_mean_and_sampling_draws_from_it(folders: list[Path]) -> None:
    translator = Translator.load(folders, "cpu")
    assert isinstance(translator.engine, TorchEngine)
    one = translator.score(SOURCES, TARGETS)
    assert [each.log_probability for each in score(folders, TARGETS, SOURCES).each] == pytest.approx(
        [each.log_probability for each in one]
    )
    drawn = translator.sample(SOURCES)
    again = translator.score(SOURCES, [each[0].text for each in drawn])
    assert len(again) == len(SOURCES)
    (best,) = translator.translate_nbest(SOURCES[:1], translator.request(beam=2))
    if best[0].finished and translator.tokenizers.target.encode(best[0].text) == list(best[0].ids):
        (forced,) = translator.score(SOURCES[:1], [best[0].text])
        assert forced.log_probability == pytest.approx(best[0].log_probability, abs=1e-4)


def test_other_vocabularies_and_other_engines_are_refused(folders: list[Path], tmp_path: Path) -> None:
    from dragoman.base.settings.load import dump_settings
    from dragoman.checkpoint.folder import model_parameters, write_model_folder
    from dragoman.checkpoint.meta import Meta, dump_meta

    other = tiny_tokenizers(275)
    section = "\n".join(f"  {line}" for line in dump_settings(tiny_config()).splitlines())
    model = tiny_model(tiny_config(), other)
    write_model_folder(tmp_path / "other", model_parameters(model), f"model:\n{section}\n", other, Meta(step=1))
    with pytest.raises(ModelError, match="one and .*other have different source vocabularies"):
        Translator.load([folders[0], tmp_path / "other"], "cpu")
    write_tiny_model(tmp_path / "backward")
    card = Meta(step=3, source_language="de", target_language="en")
    (tmp_path / "backward" / "meta.json").write_text(dump_meta(card))
    with pytest.raises(ModelError, match="source language of .*one is en, but that of .*backward is de"):
        Translator.load([folders[0], tmp_path / "backward"], "cpu")
    assert isinstance(Translator.load([folders[0]], "cpu").engine, AttentionEngine)
    assert not isinstance(Translator.load(folders, "cpu").engine, AttentionEngine)
    with pytest.raises(ConfigError, match="at least one folder"):
        Translator.load([], "cpu")
    with pytest.raises(ConfigError, match="native engine does not support ensembles"):
        Translator.load(folders, "cpu", "native")
    with pytest.raises(ConfigError, match="an ensemble has no attention weights of its own"):
        inspect(Translator.load(folders, "cpu"), SOURCES[0])
    with pytest.raises(ModelError, match="the model folder .* does not exist"):
        Translator.load([folders[0], tmp_path / "nowhere"], "cpu")


def test_the_command_line_translates_scores_and_evaluates(
    folders: list[Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_text("\n".join(TEXTS) + "\n")
    (tmp_path / "target").write_text("\n".join(TARGETS) + "\n")
    (tmp_path / "source").write_text("\n".join(SOURCES) + "\n")
    together = [str(folders[0]), "--ensemble", str(folders[1]), "--ensemble", str(folders[2]), "--device", "cpu"]
    translate_file(folders, tmp_path / "in", tmp_path / "out", device="cpu", quiet=True)
    assert main(["translate", *together, "--input", str(tmp_path / "in")]) == 0
    printed, told = capfd.readouterr()
    assert printed == (tmp_path / "out").read_text()
    assert printed.count("\n") == len(TEXTS)
    assert told.count("native: the native engine does not support ensembles") == 1
    pair = ["--source", str(tmp_path / "source")]
    assert main(["score", *together, *pair, "--target", str(tmp_path / "target")]) == 0
    assert len(capfd.readouterr().out.splitlines()) == len(TARGETS)
    assert main(["evaluate", *together, *pair, "--reference", str(tmp_path / "target"), "--metric", "bleu"]) == 0
    assert " + " in capfd.readouterr().out


def test_prefixes_and_unknown_words_work_as_with_one_model() -> None:
    words = train_tokenizers(
        TextConfig.model_validate({"subword": {"kind": "word", "min_frequency": 1}, "shared": False}), SOURCES, TARGETS
    )
    config = tiny_config(tie_embeddings=False)
    model = sharpened(tiny_model(config, words, 4))
    alone = Translator(TorchEngine(model, words, torch.device("cpu")), words)
    twice = Translator(TorchEngine(Ensemble([model, model]), words, torch.device("cpu")), words)
    texts = ["Xaver sees a dog .", "Quentin", "two Zebras sleep in Yverdon ."]
    prefixes = ["", "ein Wolf", "zwei"]
    others = [each for each in range(words.target.size) if each not in (EOS, UNK)]  # so that unknowns are generated
    search = {"forbid": others, "minimum_length": 2, "maximum_length": 4}
    one = alone.translate(texts, prefixes=prefixes, unknown="copy", search=search)
    assert twice.translate(texts, prefixes=prefixes, unknown="copy", search=search) == one
    assert one[1].startswith("ein Wolf")
    assert set(one[0].split()) <= set(texts[0].split()) and len(one[0].split()) >= 2
