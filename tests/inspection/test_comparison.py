"""Two models compared: differences, scores, links by words whatever the tokenisers are, and ranked sentence pairs."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from analysed_models import translator
from closeness import assert_close
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import sentence_bleu, sentence_chrf
from tiny_model import tiny_config, tiny_model, tiny_tokenizers

from dragoman import Translator, score
from dragoman.base.errors import DataError
from dragoman.checkpoint.folder import LoadedModel
from dragoman.checkpoint.meta import Meta
from dragoman.inspection.comparison import compare_translations, rank_pairs
from dragoman.text.words import word_differences

SOURCE, REFERENCE = "a dog runs in the park .", "ein Hund rennt im Park ."
TEXTS = ("ein Hund schläft im Park .", "Hund rennt im großen Park .")
PAIRS = ("a dog runs\tein Hund rennt", "two dogs sleep\tzwei Hunde schlafen", "the man\tder Mann")

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8)


def of_other_tokenizer() -> Translator:
    """A translator whose tokens are single letters."""
    tokenizers = tiny_tokenizers(260)
    model = tiny_model(tiny_config(), tokenizers, 7)
    return Translator.of(LoadedModel(model, tokenizers, Meta(step=1), {}), torch.device("cpu"), warn_unfinished=False)


@given(WORDS, WORDS)
def test_differences_turn_one_text_into_the_other(words: list[str], others: list[str]) -> None:
    differences = word_differences(words, others)
    built, place, other_place = list[str](), 0, 0
    for start, end, other_start, other_end in differences:
        assert words[place:start] == others[other_place:other_start]
        assert (start, other_start) != (end, other_end)
        assert words[start:end] != others[other_start:other_end]
        built += [*words[place:start], *others[other_start:other_end]]
        place, other_place = end, other_end
    assert built + words[place:] == others
    assert (not differences) == (words == others)


def test_scores_are_those_of_the_command_and_of_sacrebleu() -> None:
    models = translator(seed=1), translator(seed=2)
    found = compare_translations(models, SOURCE, TEXTS, REFERENCE)
    for side, model in enumerate(models):
        own, other, reference = (
            score(model, [text], [SOURCE], quiet=True).each[0].log_probability
            for text in (TEXTS[side], TEXTS[1 - side], REFERENCE)
        )
        assert_close(found.scores["log-probability of its own translation"][side], own)
        assert_close(found.scores["log-probability of the other translation"][side], other)
        assert_close(found.scores["log-probability of the reference"][side], reference)
        bleu = sentence_bleu(TEXTS[side], [REFERENCE], use_effective_order=True).score
        assert found.scores["BLEU"][side] == bleu > 0
        assert found.scores["chrF2"][side] == sentence_chrf(TEXTS[side], [REFERENCE]).score
    assert found.scores["log-probability of its own translation"][0] != pytest.approx(
        found.scores["log-probability of its own translation"][1]
    )
    assert list(compare_translations(models, SOURCE, TEXTS).scores) == list(found.scores)[:2]


def test_models_with_different_tokenisers_are_compared_by_words() -> None:
    models = translator(), of_other_tokenizer()
    lengths = [len(model.tokenizers.target.encode(TEXTS[0])) for model in models]
    assert lengths[0] != lengths[1]
    found = compare_translations(models, SOURCE, (TEXTS[0], TEXTS[0]), names=("pieces", "letters"))
    assert found.differences == ()
    for links, model in zip(found.links, models, strict=True):
        assert links == model.align([SOURCE], [TEXTS[0]])[0]
        assert {target for _, target in links} == set(range(6)) and max(links)[0] < 7
    figure = compare_translations(models, SOURCE, TEXTS).figure()
    assert figure.differences == ((0, 1, 0, 0), (2, 3, 1, 2), (4, 4, 3, 4))
    assert figure.different == ({0, 2}, {1, 3})


def test_a_model_without_attention_has_no_links_and_says_so() -> None:
    models = translator(), translator("recurrent without attention")
    found = compare_translations(models, SOURCE, TEXTS, names=("with", "without"))
    assert found.links[0] and not found.links[1]
    assert found.absent == ("without: this model's decoder has no attention weights over source tokens",)


def test_an_empty_translation_is_compared() -> None:
    found = compare_translations((translator(), translator()), SOURCE, ("", TEXTS[1]), REFERENCE)
    assert found.links[0] == () and found.scores["BLEU"][0] == 0
    assert found.differences == ((0, 0, 0, 6),)


def test_the_figure_has_all_words_and_numbers(tmp_path: Path) -> None:
    figure = compare_translations((translator(), translator(seed=2)), SOURCE, TEXTS, REFERENCE).figure()
    arrays = figure.arrays()
    np.testing.assert_array_equal(arrays["scores"], list(figure.scores.values()))
    assert [tuple(link) for link in arrays["links-0"].tolist()] == sorted(figure.links[0])
    files = figure.save(tmp_path, "comparison")
    before = [file.read_bytes() for file in files]
    figure.save(tmp_path, "comparison")
    assert [file.read_bytes() for file in files] == before
    rows = list(csv.DictReader((tmp_path / "comparison.csv").open(encoding="utf-8")))
    assert [row["word"] for row in rows] == " ".join(TEXTS).split()
    assert [row["word"] for row in rows if row["differs"] == "yes"] == ["ein", "schläft", "rennt", "großen"]


def test_pairs_are_ranked_by_the_difference_of_the_models() -> None:
    references = ["ein Hund rennt", "zwei Hunde schlafen", "der Mann"]
    texts = [("ein Hund rennt", "ein Hund rennt"), ("drei", "zwei Hunde schlafen"), ("der Mann", "der Hund")]
    ranked = rank_pairs(texts, references, "chrf")
    assert ranked.order == (1, 2, 0)
    for (first, second), pair, reference in zip(ranked.values, texts, references, strict=True):
        assert (first, second) == tuple(sentence_chrf(text, [reference]).score for text in pair)
    figure = ranked.figure(["a", "b", "c"], ("one", "two"), marked=2)
    assert figure.labels == ("b", "c", "a") and figure.marked == (1,)
    assert figure.values[0] > 0 > figure.values[1] and figure.values[2] == 0
    assert rank_pairs(texts, references, "bleu").measure == "BLEU"


def test_texts_that_are_too_long_for_a_model_are_refused() -> None:
    model = translator()
    with pytest.raises(DataError, match="at most 512"):
        compare_translations((model, model), SOURCE, ("a " * 600, "a"))
