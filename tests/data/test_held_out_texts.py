"""Held-out examples and documents are chosen by text: near-duplicates are together, and no label is lost."""

from collections import Counter
from pathlib import Path
from typing import Any

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
from dragoman.data.held_out.example_files import find_examples, load_examples, save_examples
from dragoman.data.held_out.examples import HeldOutExamples
from dragoman.data.held_out.texts import RankedTexts
from dragoman.data.labelled.examples import Answer, LabelledText, ParsedSentence, Question, TaggedSentence
from dragoman.text.trees.brackets import parse_tree

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
    known = sets.keys(lambda each: each.texts[0]).all
    train = [each for each in examples if sentence_key(each.texts[0]) not in known]
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
    questions = [
        Question("1", "who?", "A dog\nran.", (Answer("A dog", 0), Answer("dog", 2))),
        Question("2", "why?", "A dog\nran.", impossible=True),
    ]
    tree = parse_tree("(S (NP (-LRB- -LRB-) (NN end)) (VP (VB is)))")
    trees = [ParsedSentence(tree.texts, tree), ParsedSentence(tree.texts, tree, tag="wsj/2")]
    kinds: dict[str, list[Any]] = {"pairs": pairs, "tagged": tagged, "questions": questions, "trees": trees}
    for name, examples in {**kinds, "single": [LabelledText(("a",), "x")] * 2}.items():
        sets = HeldOutExamples(examples[:1], examples[1:])
        save_examples(tmp_path / name, sets)
        assert load_examples(tmp_path / name) == sets
    tagged_trees = HeldOutExamples([], [trees[0], trees[1], trees[1]])
    save_examples(tmp_path / "tags", tagged_trees)
    assert load_examples(tmp_path / "tags") == tagged_trees
    assert [path.name for path in find_examples(tmp_path / "tags", "test")] == ["test.trees", "test.wsj%2F2.trees"]
    assert load_examples(tmp_path) is None
    documents = HeldOutDocuments(("a\n\nb", "c"), ("d",))
    documents.save(tmp_path / "text")
    assert HeldOutDocuments.load(tmp_path / "text") == documents
    (tmp_path / "single" / "test.jsonl").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="damaged"):
        load_examples(tmp_path / "single")


def test_questions_about_one_context_are_together_and_have_identifiers_of_their_own() -> None:
    contexts = ["one dog", "two cats", "three cows", "four birds", "five fish"]
    questions = [
        Question(str(number % 50), "who?", contexts[number % 5], (Answer("o", contexts[number % 5].index("o")),))
        for number in range(100)
        if "o" in contexts[number % 5]
    ]
    sets = HeldOutExamples.choose(questions, SMALL, "file", lambda each: each.context, lambda each: ())
    for part in (sets.valid, sets.test):  # every context has more questions than a set, so that one is chosen
        assert len(part) == 20
        assert len({each.context for each in part}) == 1
        assert len({each.id for each in part}) == 20
    assert sets.valid[0].context != sets.test[0].context


def articles(count: int, paragraphs: int) -> list[Question]:
    """Questions about paragraphs of articles. The last paragraph of each article also occurs in one without a title."""
    found = []
    for number in range(count * paragraphs):
        context, title = f"{'ab' * (number + 1)} is it", f"article {number // paragraphs}"
        found += [Question(f"{number}-{each}", f"q{each}", context, (), True, title) for each in range(2)]
        if number % paragraphs == paragraphs - 1:
            found.append(Question(f"{number}-untitled", "q", context, (), True))
    return found


def contexts_by_set(questions: list[Question], config: HeldOutConfig) -> tuple[list[Question], list[set[str]]]:
    sets = HeldOutExamples.choose(questions, config, "file", lambda each: each.context, lambda each: ())
    known = sets.keys(lambda each: each.context).all
    train = [each for each in questions if sentence_key(each.context) not in known]
    return train, [{each.context for each in part} for part in (train, sets.valid, sets.test)]


def test_paragraphs_of_one_article_are_in_one_set() -> None:
    questions = articles(9, 4)
    train, sets = contexts_by_set(questions, HeldOutConfig(valid=20, test=20))
    assert all(sets) and sum(map(len, sets)) == 36
    for title in {each.title for each in questions if each.title}:
        paragraphs = {each.context for each in questions if each.title == title}
        assert sum(bool(paragraphs & part) for part in sets) == 1, title
    assert len({each.title for each in train} - {""}) == 5


def test_too_few_articles_are_divided_by_paragraphs() -> None:
    _, sets = contexts_by_set(articles(1, 12), HeldOutConfig(valid=4, test=4))
    assert all(sets) and sum(map(len, sets)) == 12


def test_stored_questions_keep_their_titles(tmp_path: Path) -> None:
    questions = articles(2, 2)
    save_examples(tmp_path, HeldOutExamples(questions[:3], questions[3:]))
    assert load_examples(tmp_path) == HeldOutExamples(questions[:3], questions[3:])


def test_trees_of_several_treebanks_are_grouped_by_their_tags() -> None:
    trees = [parse_tree(f"(S (NN {chr(97 + number // 5)}{chr(97 + number % 5)}))") for number in range(25)]
    sentences = [ParsedSentence(tree.texts, tree, "ab"[row % 2], part=row % 2) for row, tree in enumerate(trees)]
    sets = HeldOutExamples.choose(sentences, SMALL, "file", lambda each: each.words[0], lambda each: ())
    assert [each.tag for each in sets.test] == sorted(each.tag for each in sets.test)
    assert {each.part for each in (*sets.valid, *sets.test)} == {0}


def test_texts_of_other_tasks_stay_in_the_same_set() -> None:
    examples = [LabelledText((f"text {chr(97 + n)}",), "xy"[n % 2]) for n in range(24)]
    first = hold_out(examples)
    keys = first.keys(lambda each: each.texts[0])
    other = HeldOutExamples.choose(
        examples, HeldOutConfig(valid=4, test=3), "file", lambda each: each.texts[0], lambda each: "z", known=keys
    )
    assert set(other.valid).isdisjoint(first.test)
    assert set(other.test).isdisjoint(first.valid)
    assert not set(other.valid).isdisjoint(first.valid)


def test_documents_without_duplicates_are_held_out_first(tmp_path: Path) -> None:
    path = tmp_path / "text"
    lines = [f"own {chr(97 + number)}" for number in range(12)] + ["Again!", "again", " "] * 20
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    corpus = TextCorpusConfig(text=path)
    sets = HeldOutDocuments.choose((corpus,), SMALL, lambda each: TextRules(TextCleaningConfig(), str(each)))
    assert sets.sizes == Sizes(3, 4)
    assert {*sets.valid, *sets.test} <= set(lines[:12])
    assert sentence_key("again.") not in sets.keys.all
    assert sentence_key(sets.test[0].upper()) in sets.keys.test
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
