"""The distribution after any prefix and forced words, against forced decoding and the search itself."""

import json
from math import log
from pathlib import Path
from typing import Any

import pytest
from analysed_models import SOURCE, TARGET, end_translations, language_model, predictor, translator
from closeness import assert_close
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_language_model import write_tiny_language_model
from tiny_model import write_tiny_model

from dragoman import Translator
from dragoman.base.errors import ConfigError, DataError
from dragoman.cli.main import main
from dragoman.inference.generation.subject import MAX_NEW_TOKENS
from dragoman.inference.subject import SubjectSettings
from dragoman.inspection.heads import heads_off
from dragoman.inspection.next_tokens import continue_prefix, next_tokens, next_tokens_at_each_position
from dragoman.text.symbols import BOS, EOS

FAMILIES = ("transformer", "recurrent without attention", "convolutional", "bytenet")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_probabilities_at_each_position_are_those_of_the_translation(family: str) -> None:
    model = translator(family)
    positions = next_tokens_at_each_position(model, SOURCE, SubjectSettings(target=TARGET), count=3)
    (score,) = model.score([SOURCE], [TARGET])
    assert len(positions) == score.tokens
    assert_close(sum(log(each.actual_probability or 0) for each in positions), score.log_probability)
    for position, found in enumerate(positions):
        assert found.prefix == tuple(each.actual for each in positions[:position])
        assert len(found.tokens) == 3
        assert list(found.probabilities) == sorted(found.probabilities, reverse=True)
        assert found.probabilities.sum() + found.rest == pytest.approx(1, abs=1e-6)
    assert positions[-1].actual == "</s>"


@settings(max_examples=10)
@given(st.integers(1, 400))
def test_the_listed_tokens_and_the_rest_sum_to_one(count: int) -> None:
    model = language_model()
    found = next_tokens(model, "a dog", count=count)
    assert len(found.tokens) == min(count, model.tokenizer.size)
    assert found.probabilities.sum() + found.rest == pytest.approx(1, abs=1e-6)
    everything = next_tokens(model, "a dog", count=1000)
    assert list(found.ids) == list(everything.ids[:count])
    assert_close(found.entropy, -sum(p * log(p) for p in everything.probabilities if p))
    assert everything.rest == 0


def test_the_distribution_after_a_prefix_is_that_at_its_position() -> None:
    model = translator()
    positions = next_tokens_at_each_position(model, SOURCE, SubjectSettings(target=TARGET))
    ids = model.tokenizers.target.encode(TARGET)
    for length in range(len(ids)):
        found = next_tokens(model, SOURCE, ids[:length])
        assert len(found.prefix) == len(positions[length].prefix) == length
        assert found.actual is None
        assert_close(found.probabilities, positions[length].probabilities, size=1.0)
    texts = (
        next_tokens(model, SOURCE, "ein Hund"),
        next_tokens(model, SOURCE, model.tokenizers.target.encode("ein Hund")),
    )
    assert texts[0].tokens == texts[1].tokens


@pytest.mark.parametrize(
    "family",
    [pytest.param(each, marks=pytest.mark.slow if each in ("convolutional", "bytenet") else ()) for each in FAMILIES],
)
def test_the_own_translation_forced_has_its_own_score(family: str) -> None:
    model = translator(family, 5)
    end_translations(model, SOURCE)
    (best,) = model.translate_nbest([SOURCE])[0]
    assert best.finished
    for prefix in ([*best.ids, EOS], [], best.ids[:1]):
        forced: Any = continue_prefix(model, SOURCE, prefix)
        assert forced.ids[: len(prefix)] == tuple(prefix[: len(forced.ids)])
        assert forced.score >= best.score - 1e-5  # the whole beam begins with the prefix
        if prefix != best.ids[:1]:
            assert (forced.text, forced.ids, forced.finished) == (best.text, best.ids, True)
            assert forced.score == pytest.approx(best.score, abs=1e-5)
            assert forced.log_probability == pytest.approx(best.log_probability, abs=1e-5)


def test_a_forced_word_begins_the_translation_and_the_rest_is_searched_again() -> None:
    model = translator()
    forced = continue_prefix(model, SOURCE, "ein Hund")
    (expected,) = model.translate_nbest([SOURCE], requests=model.request(prefix="ein Hund"))[0]
    assert (forced.text, forced.score) == (expected.text, expected.score)
    assert forced.text.startswith("ein Hund")
    ids = model.tokenizers.target.encode("ein Hund")
    assert continue_prefix(model, SOURCE, ids).ids == forced.ids
    with heads_off(model.model, ["decoder.cross_attention:1:1"]):
        assert continue_prefix(model, SOURCE, "ein Hund").log_probability != forced.log_probability


def test_a_language_model_continues_with_the_most_probable_tokens() -> None:
    model = language_model()
    found: Any = continue_prefix(model, "a dog", " runs")
    (greedy,) = model.generate(["a dog runs"], top_k=1, max_tokens=MAX_NEW_TOKENS)
    assert found.text == "a dog runs" + greedy
    values = model.sequence("").subject(found.ids).values()
    assert_close(found.log_probability, values.sum() if found.finished else values[:-1].sum())
    ended = continue_prefix(model, "", [*model.tokenizer.encode("a dog"), EOS])
    assert_close(ended.log_probability, model.score(["a dog"])[0].log_probability)


def test_a_model_with_a_head_has_no_next_token() -> None:
    for function in (next_tokens, next_tokens_at_each_position, continue_prefix):
        with pytest.raises(ConfigError, match="so that no token follows a prefix"):
            function(predictor(), SOURCE)


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ([BOS], f"the prefix contains the id {BOS}, which is not that of a token"),
        ([EOS, 5], f"the prefix contains the id {EOS}"),
        ([10_000], "the prefix contains the id 10000"),
        ([-1], "the prefix contains the id -1"),
        ([5, EOS], "no token follows: remove the end symbol"),
    ],
)
def test_invalid_prefixes_are_rejected(prefix: list[int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        next_tokens(translator(), SOURCE, prefix)


def test_other_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ConfigError, match="a prefix takes the place of the target"):
        next_tokens(translator(), SOURCE, "ein", SubjectSettings(target=TARGET))
    with pytest.raises(ConfigError, match="the number of tokens to list must be at least 1, not 0"):
        next_tokens(translator(), SOURCE, count=0)
    with pytest.raises(ConfigError, match="--to can only be used with a translation model"):
        next_tokens(language_model(), SOURCE, settings=SubjectSettings(to="de"))
    with pytest.raises(DataError, match="the text is blank"):
        next_tokens(translator(), "")
    with pytest.raises(DataError, match="pictures show at most 512 per side"):
        next_tokens(translator(), SOURCE, "a" * 600)


def test_the_command_prints_the_tokens_and_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tiny_model(tmp_path / "model")
    command = ["inspect", "next", str(tmp_path / "model"), SOURCE, "--prefix", "ein", "--count", "3", "--device", "cpu"]
    assert main(command) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3 + 1 + 1
    assert sum(float(line.split("  ")[-2]) for line in printed[:4]) == pytest.approx(1, abs=1e-3)
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    loaded = Translator.load(tmp_path / "model", "cpu", "torch")
    output = found.pop("output")
    assert found == next_tokens(loaded, SOURCE, "ein", count=3).as_json()
    assert output["text"] == continue_prefix(loaded, SOURCE, "ein").text
    write_tiny_language_model(tmp_path / "lm")
    assert main(["inspect", "next", str(tmp_path / "lm"), "a dog", "--count", "2", "--device", "cpu"]) == 0
    assert "\na dog" in capsys.readouterr().out
