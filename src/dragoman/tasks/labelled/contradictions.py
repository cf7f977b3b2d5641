"""Contradictions of labels: texts that have different labels in several examples, and labels in two spellings."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dragoman.data.held_out.check import Finding
from dragoman.data.labelled.examples import LabelledText, TaggedSentence
from dragoman.tasks.labelled.unknown_labels import check_spellings

_SHOWN = 2
"""Number of texts that a message shows."""
_LONGEST = 60
"""Number of characters of a text that a message shows."""

_Example = LabelledText | TaggedSentence
Texts = tuple[str, ...]
Labels = tuple[str, ...]


def check_training_labels(
    train: Sequence[Any],
    valid: Sequence[Any],
    names: tuple[str, str],
    *,
    texts: Callable[[Any], Sequence[str]],
    labels: Callable[[Any], Sequence[str]],
) -> Iterator[Finding]:
    """Yield labels in two spellings, training texts with different labels, and held-out texts with other labels.

    Texts are equal if they differ at most in spaces. Trees and answers are not compared: a sentence may have several.
    train, valid: the examples. names: of both in messages. texts, labels: return the texts, or the labels, of an
    example.
    """
    train, valid = ([each for each in examples if isinstance(each, _Example)] for examples in (train, valid))
    yield from check_spellings((label for example in train for label in labels(example)), names[0])
    found, held_out = (_by_text(each, texts, labels) for each in (train, valid))
    several = [
        (text, first, second)
        for text, examples in found.items()
        if len(examples) > 1
        for first, second in [list(examples.items())[:2]]
    ]
    if several:
        yield Finding(
            f"{_count(several)} different labels in {names[0]}, of which a model can learn only one, for example "
            f"{_list(several)}. Correct the labels, or remove these examples"
        )
    other = [
        (text, next(iter(found[text].items())), next(iter(examples.items())))
        for text, examples in held_out.items()
        if text in found and not found[text].keys() & examples.keys()
    ]
    if other:
        yield Finding(
            f"{_count(other)} other labels in {names[1]} than in {names[0]}, for example {_list(other)}. Correct the "
            "labels, or remove these examples from the training data"
        )


def _by_text(
    examples: Sequence[Any], texts: Callable[[Any], Sequence[str]], labels: Callable[[Any], Sequence[str]]
) -> dict[Texts, dict[Labels, Any]]:
    """Return, for each text, the first example of each of its labels."""
    found: dict[Texts, dict[Labels, Any]] = {}
    for example in examples:
        key = tuple(" ".join(each.split()) for each in texts(example))
        found.setdefault(key, {}).setdefault(tuple(labels(example)), example)
    return found


_Labelled = tuple[Labels, Any]


def _count(shown: Sequence[object]) -> str:
    return f"{len(shown):,} {'text has' if len(shown) == 1 else 'texts have'}"


def _list(shown: Sequence[tuple[Texts, _Labelled, _Labelled]]) -> str:
    return " and ".join(f"{_shorten(' / '.join(texts))!r} ({_compare(*both)})" for texts, *both in shown[:_SHOWN])


def _compare(one: _Labelled, other: _Labelled) -> str:
    """Describe the labels of two examples of one text: of tagged words, the first one that differs."""
    place = next((n for n, (first, second) in enumerate(zip(one[0], other[0], strict=False)) if first != second), 0)
    return " and ".join(f"{labels[place]!r} in {example.file}, line {example.line}" for labels, example in (one, other))


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
