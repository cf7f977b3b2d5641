"""`score_tags` compares tags that any program has written with those of a test set."""

from collections.abc import Sequence
from pathlib import Path

from dragoman.base.errors import DataError
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.data.labelled.conll import count_columns
from dragoman.data.labelled.corpus import TaggedCorpusConfig
from dragoman.data.labelled.examples import TaggedSentence
from dragoman.data.labelled.read import read_tagged
from dragoman.metrics.labels.report import Report
from dragoman.metrics.labels.scoring import tagging_report


def score_tags(test: Path | None, hypotheses: Sequence[Path], settings: Overrides) -> list[Report]:
    """Return the report on each file of predicted tags.

    test: the file of the correct tags; None if each hypothesis has them in the column before its last. settings: of the
    correct tags. A hypothesis with as many columns as `test` has its tags in the same column, another in the last one;
    with a single column, it consists of tags. Raises DataError with file and line if the words or their numbers differ.
    """
    if test is None:
        return [_report(*_both_columns(path, settings)) for path in hypotheses]
    corpus = load_settings(None, all_overrides({"path": str(test)}, settings), TaggedCorpusConfig)
    gold = read_tagged(corpus)
    return [_report(gold, _read_predicted(path, corpus)) for path in hypotheses]


def _both_columns(path: Path, settings: Overrides) -> tuple[list[TaggedSentence], list[TaggedSentence]]:
    """Return the correct and the predicted tags of one file."""
    width = count_columns(TaggedCorpusConfig(path=path))
    if width < 3:
        raise DataError(
            f"{path}, line 1: expected the word, the correct and the predicted tag in each line: give the file of the "
            "correct tags with --test FILE"
        )
    gold = load_settings(None, all_overrides({"path": str(path), "tag": width - 1}, settings), TaggedCorpusConfig)
    return read_tagged(gold), read_tagged(gold.model_copy(update={"tag": "last"}))


def _read_predicted(path: Path, gold: TaggedCorpusConfig) -> list[TaggedSentence]:
    plain = TaggedCorpusConfig(path=path, encoding=gold.encoding)
    if count_columns(plain) == count_columns(gold):
        plain = gold.model_copy(update={"path": path, "name": None})
    found = read_tagged(plain, labelled=False)
    return [each for each in found if each.tags is not None] or found


def _report(gold: Sequence[TaggedSentence], predicted: Sequence[TaggedSentence]) -> Report:
    for correct, other in zip(gold, predicted, strict=False):
        _check_words(correct, other)
    if len(gold) != len(predicted):
        longer, shorter = (gold, predicted) if len(gold) > len(predicted) else (predicted, gold)
        raise DataError(
            f"{longer[len(shorter)].location()}: {shorter[-1].file} has no such sentence: it has {len(shorter):,} "
            f"sentences, and {longer[0].file} has {len(longer):,}. Give one tag per word of the same text."
        )
    tags = [each.tags or () for each in gold], [each.tags or each.words for each in predicted]
    if {tag for row in tags[0] for tag in row}.isdisjoint(tag for row in tags[1] for tag in row):
        raise DataError(
            f"{predicted[0].location()}: {tags[1][0][0]!r}, like all other predicted tags, is not a tag of "
            f"{gold[0].file}. Set `tag` to the column of the correct tags."
        )
    return tagging_report(
        *tags,
        words=[each.words for each in gold],
        locate=(lambda row, word: gold[row].location(word), lambda row, word: predicted[row].location(word)),
    )


def _check_words(gold: TaggedSentence, predicted: TaggedSentence) -> None:
    """Raise DataError if two sentences have different words, or different numbers of words."""
    pairs = zip(gold.words, predicted.words, strict=False)
    word = next((number for number, (own, other) in enumerate(pairs) if own != other), None)
    if predicted.tags is not None and word is not None:
        raise DataError(
            f"{predicted.location(word)}: the word is {predicted.words[word]!r}, but {gold.words[word]!r} in "
            f"{gold.location(word)}. Give the predicted tags of the same words."
        )
    if len(gold.words) != len(predicted.words):
        raise DataError(
            f"{predicted.location()}: the sentence has {len(predicted.words)} words, but {len(gold.words)} in "
            f"{gold.location()}. Give one tag per word, with blank lines between the same sentences."
        )
