"""Held-out examples and documents are chosen by text: near-duplicates are together, and no label is lost."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.cleaning.rules import TextRules
from dragoman.data.cleaning.sentence_keys import sentence_key
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.held_out.config import HeldOutConfig, Sizes
from dragoman.data.held_out.documents import HeldOutDocuments
from dragoman.data.held_out.examples import HeldOutExamples, load_examples, save_examples
from dragoman.data.held_out.texts import RankedTexts
from dragoman.data.labelled.examples import LabelledText, TaggedSentence

SMALL = HeldOutConfig(valid=3, test=4)
texts = st.lists(st.sampled_from("a b c d e f g h i j k l m n o p".split()), min_size=1, max_size=3).map(" ".join)
labelled = st.lists(st.builds(lambda text, label: LabelledText((text,), label), texts, st.sampled_from("xyz")))


def hold_out(examples: list[LabelledText], config: HeldOutConfig = SMALL) -> HeldOutExamples[LabelledText]:
    return HeldOutExamples.choose(examples, config, "file", lambda each: each.texts[0], lambda each: [str(each.label)])


@settings(max_examples=30, deadline=None)
@given(examples=labelled)
def test_every_example_is_in_one_set_with_its_duplicates_and_training_has_all_labels(
    examples: list[LabelledText],
) -> None:
    try:
        sets = hold_out(examples)
    except DataError:  # too few examples or different texts
        return
    train = sets.remaining(examples, lambda each: each.texts[0])
    assert Counter(examples) == Counter([*train, *sets.valid, *sets.test])
    keys = [{sentence_key(each.texts[0]) for each in part} for part in (train, sets.valid, sets.test)]
    assert sum(map(len, keys)) == len(set.union(*keys))
    assert {each.label for each in train} == {each.label for each in examples}
    assert 0 < len(sets.valid) <= 3
    assert 0 < len(sets.test) <= 4


def test_the_choice_depends_on_the_texts_and_the_seed_only() -> None:
    examples = [LabelledText((f"text {chr(97 + n // 26)}{chr(97 + n % 26)}",), "xy"[n % 2]) for n in range(200)]
    sets, reverse = hold_out(examples), hold_out(examples[::-1])
    assert (sorted(map(repr, sets.valid)), set(sets.test)) == (sorted(map(repr, reverse.valid)), set(reverse.test))
    assert set(hold_out(examples, HeldOutConfig(valid=3, test=4, seed=2)).test) != set(sets.test)
    assert hold_out(examples, HeldOutConfig()).sizes == Sizes(20, 20)


def test_stored_sets_are_read_as_they_were_written(tmp_path: Path) -> None:
    pairs = [LabelledText(("first\nline", "second"), "0.5", "7"), LabelledText(("a", "b"), "1", "8")]
    tagged = [
        TaggedSentence(("#", "b c"), ("O", "B-X"), (("N", "V"),), "s1"),
        TaggedSentence(("d",), ("O",), (("N",),)),
    ]
    for name, examples in (("pairs", pairs), ("tagged", tagged), ("single", [LabelledText(("a",), "x")] * 2)):
        sets = HeldOutExamples(examples[:1], examples[1:])
        save_examples(tmp_path / name, sets)
        assert load_examples(tmp_path / name) == sets
    assert load_examples(tmp_path) is None
    documents = HeldOutDocuments(("a\n\nb", "c"), ("d",))
    documents.save(tmp_path / "text")
    assert HeldOutDocuments.load(tmp_path / "text") == documents
    (tmp_path / "single" / "test.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="damaged"):
        load_examples(tmp_path / "single")


def test_documents_without_duplicates_are_held_out_first(tmp_path: Path) -> None:
    path = tmp_path / "text"
    lines = [f"own {chr(97 + number)}" for number in range(12)] + ["Again!", "again", " "] * 20
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = TextCorpusConfig(text=path)
    sets = HeldOutDocuments.choose((corpus,), SMALL, lambda each: TextRules(TextCleaningConfig(), str(each)))
    assert sets.sizes == Sizes(3, 4)
    assert {*sets.valid, *sets.test} <= set(lines[:12])
    assert not sets.keys.contain_text("again.")
    assert sets.keys.contain_text(sets.test[0].upper())
    whole = TextCorpusConfig(text=path, documents="file")
    with pytest.raises(DataError, match=r"only 1 documents, too few .* data.train.documents=blank_line"):
        HeldOutDocuments.choose((whole,), SMALL, lambda each: TextRules(TextCleaningConfig(), str(each)))


def test_counts_of_ranked_texts_are_exact() -> None:
    ranked, occurrences = RankedTexts(2, seed=1), [f"{chr(97 + n % 20)}" for n in range(60)] + ["a"]
    for text in occurrences:
        ranked.add(sentence_key(text), text)
    counts = Counter(occurrences)
    assert len(ranked._texts) == 8
    assert all(ranked._counts[key] == counts[text] for key, text in ranked._texts.items())


def test_more_than_half_is_refused_by_name() -> None:
    examples = [LabelledText((f"text {chr(97 + n)}",), "xy"[n % 2]) for n in range(24)]
    with pytest.raises(
        ConfigError, match=r"10 examples for validation and 10 for testing are more than half of the 24"
    ):
        hold_out(examples, HeldOutConfig(valid=10, test=10))
