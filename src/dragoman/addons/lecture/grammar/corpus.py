"""The embedded corpus: sentences in English, German and French, drawn from a seed."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from dragoman.addons.lecture.grammar.held_out import KINDS, held_out
from dragoman.addons.lecture.grammar.languages import english, french, german
from dragoman.addons.lecture.grammar.rules import Rules
from dragoman.addons.lecture.grammar.tree import Utterance
from dragoman.base.errors import ConfigError

LANGUAGES = ("en", "de", "fr")
_LONGEST = 20
_SHORTEST = 4


class Sentence(NamedTuple):
    """One sentence in three languages."""

    en: str
    de: str
    fr: str


@dataclass(frozen=True)
class EmbeddedCorpus:
    """Three disjoint sets of sentences. derivations: the derivation tree of each sentence."""

    train: list[Sentence]
    valid: list[Sentence]
    test: list[Sentence]
    derivations: dict[Sentence, Utterance]


def realise(utterance: Utterance) -> Sentence:
    """Return the tree's sentence in three languages."""
    return Sentence(english.realise(utterance), german.realise(utterance), french.realise(utterance))


def words(text: str) -> set[str]:
    """Return the lowercased words of a sentence without punctuation."""
    bare = text.lower().replace("\u00a0", " ").replace("'", "' ")
    return {word.strip(".,?!") for word in bare.split()} - {""}


def _fits(sentence: Sentence) -> bool:
    return all(_SHORTEST <= len(text.split()) <= _LONGEST for text in sentence)


def generate(seed: int = 1, train: int = 12000, valid: int = 500, test: int = 500) -> EmbeddedCorpus:
    """Draw a corpus. It depends only on the seed and the sizes, not on the platform or the Python version.

    Validation sentences are drawn in the same way as training sentences. Every test sentence contains at least one
    combination of `held_out`, which no training or validation sentence contains. All words of the test sentences occur
    in training in each language. No sentence occurs twice in any language.

    Raises ConfigError if a size is negative, or if `train` is too small to contain the words of the test set.
    """
    if min(train, valid, test) < 0:
        raise ConfigError(f"embedded corpus: sizes train={train}, valid={valid}, test={test} must not be negative")
    rules = Rules(Random(seed))
    seen: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    known: tuple[set[str], set[str], set[str]] = (set(), set(), set())
    derivations: dict[Sentence, Utterance] = {}
    splits: dict[str, list[Sentence]] = {"train": [], "valid": [], "test": []}
    shown: Counter[str] = Counter()
    quota = -(-test // len(KINDS))
    # All kinds have equal shares of the test set. After `balanced_attempts`, frequent kinds fill the rest.
    balanced_attempts = 2 * train + valid + 50 * test
    attempts, limit = 0, 50 * (train + valid + test) + 20000
    while len(splits["train"]) < train or len(splits["valid"]) < valid or len(splits["test"]) < test:
        attempts += 1
        if attempts > limit:
            raise ConfigError(
                f"embedded corpus: train={train} sentences do not contain all words of valid={valid} and "
                f"test={test} sentences: increase train"
            )
        utterance = rules.utterance()
        combinations = held_out(utterance)
        split = "test" if combinations else "train" if len(splits["train"]) < train else "valid"
        size = {"train": train, "valid": valid, "test": test}[split]
        if len(splits[split]) >= size or (split == "test" and len(splits["train"]) < train):
            continue
        kind = max((combination.kind for combination in combinations), key=KINDS.index, default="")
        if split == "test" and shown[kind] >= quota and attempts < balanced_attempts:
            continue
        sentence = realise(utterance)
        if not _fits(sentence) or any(text in before for text, before in zip(sentence, seen, strict=True)):
            continue
        if split == "train":
            for text, vocabulary in zip(sentence, known, strict=True):
                vocabulary |= words(text)
        elif not all(words(text) <= vocabulary for text, vocabulary in zip(sentence, known, strict=True)):
            continue
        for text, before in zip(sentence, seen, strict=True):
            before.add(text)
        shown[kind] += 1
        derivations[sentence] = utterance
        splits[split].append(sentence)
    return EmbeddedCorpus(splits["train"], splits["valid"], splits["test"], derivations)


def write(corpus: EmbeddedCorpus, folder: Path) -> None:
    """Write train.en, train.de, train.fr, valid.*, test.* as UTF-8, one sentence per line."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid", "test"):
        sentences: list[Sentence] = getattr(corpus, name)
        for language in LANGUAGES:
            text = "".join(getattr(sentence, language) + "\n" for sentence in sentences)
            (folder / f"{name}.{language}").write_bytes(text.encode())
