"""Grammatical annotations of English sentences of the embedded corpus, derived from their syntax trees."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.addons.lecture.grammar.languages.english import utterance_words
from dragoman.addons.lecture.grammar.origins import origins_of, single_words
from dragoman.addons.lecture.grammar.tree import Clause, Phrase, Utterance
from dragoman.text.symbols import EOS, SPECIAL_SYMBOLS

_END = SPECIAL_SYMBOLS[EOS]

_PARTS_OF_SPEECH = {
    "main": "verb",
    "modal": "auxiliary",
    "future": "auxiliary",
    "and": "conjunction",
    "complementizer": "conjunction",
    "date": "adverb",
    "time": "adverb",
    "frequency": "adverb",
    "manner": "adverb",
    "vehicle": "adverb",
    "address": "name",
    "question": "pronoun",
    "than": "particle",
    "degree": "particle",
    "to": "particle",
}
"""Parts of speech of words whose part of the tree has another name."""


@dataclass(frozen=True)
class AnnotatedWord:
    """A word of a sentence.

    part: the part of the tree that it expresses, as a path such as `clause.subject.noun`. part_of_speech: such as noun
    or determiner. plural: the number of its noun phrase, for nouns, determiners and adjectives in noun phrases; None
    for other words. tense: past, present or future, the tense of its clause.
    """

    text: str
    part: str
    part_of_speech: str
    plural: bool | None
    tense: str | None

    @property
    def constituent(self) -> str:
        """The path of the constituent of which the word is an immediate part, such as `clause.subject`."""
        return self.part.rpartition(".")[0]


def annotate(utterance: Utterance) -> list[AnnotatedWord]:
    """Return the words of the English sentence, without punctuation, in order."""
    return [_annotated(utterance, word) for word in single_words(utterance_words(utterance)) if word != ","]


def constituents(words: list[AnnotatedWord]) -> dict[str, tuple[int, int]]:
    """Return the spans (start, end), `end` exclusive, of the constituents of at least two adjacent words, by path.

    The whole sentence is not included. A constituent with a gap, such as a verb and its auxiliary around a subject, is
    omitted.
    """
    positions: dict[str, list[int]] = defaultdict(list)
    for position, word in enumerate(words):
        path = word.part
        while path := path.rpartition(".")[0]:
            positions[path].append(position)
    spans = {path: (found[0], found[-1] + 1) for path, found in positions.items()}
    return {
        path: (start, end)
        for path, (start, end) in spans.items()
        if 2 <= end - start < len(words) and end - start == len(positions[path])
    }


def token_positions(pieces: Sequence[str], words: Sequence[AnnotatedWord]) -> list[int] | None:
    """Return the position of the token of each word, or None if a word is divided into several tokens.

    pieces: the tokens of the sentence. Punctuation has tokens, but is not in `words`.
    """
    positions = [position for position, piece in enumerate(pieces) if any(map(str.isalnum, piece)) and piece != _END]
    return positions if len(positions) == len(words) else None


def _annotated(utterance: Utterance, word: str) -> AnnotatedWord:
    part = origins_of(word)[0]
    *path, name = part.split(".")
    nodes = _nodes(utterance, path)
    phrase = nodes[-1] if isinstance(nodes[-1], Phrase) else None
    clause = next((each for each in reversed(nodes) if isinstance(each, Clause)), None)
    return AnnotatedWord(
        str(word),
        part,
        _PARTS_OF_SPEECH.get(name, name),
        phrase.plural if phrase is not None and name in ("noun", "determiner", "adjective") else None,
        None if clause is None else clause.tense,
    )


def _nodes(utterance: Utterance, path: list[str]) -> list[object]:
    """Return the nodes on a path from the root. It ends early at parts that have no node, such as `verb`."""
    nodes: list[object] = [utterance]
    for name in path:
        node = getattr(nodes[-1], name, None)
        if node is None or isinstance(node, str):
            break
        nodes.append(node)
    return nodes
