"""`ModelInput`: the tokens of an example, or of a part of it, as a model with a head reads them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.text.symbols import BOS, EOS, UNK
from dragoman.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class ModelInput:
    """The token ids of one row of a batch.

    ids: BOS, the tokens of each text followed by EOS. If the texts of a pair are encoded separately, both begin with
    BOS. places: positions in `ids` of the units that are predicted, such
    as the first token of each word; empty if there is one prediction per row. first: index in the example of the unit
    at the first of these positions. cut: number of tokens of the example that no input contains. continued: whether the
    example has further units after these. factors: numbers of the factors of each token, equally many for all, as
    `factor_numbers` returns them; None if the model reads only tokens.
    """

    ids: tuple[int, ...]
    places: tuple[int, ...] = ()
    first: int = 0
    cut: int = 0
    continued: bool = False
    factors: tuple[tuple[int, ...], ...] | None = None

    @property
    def tokens(self) -> NDArray[np.int64]:
        """The argument of the model: the ids (S,), or with factors (S, 1 + K)."""
        ids = np.asarray(self.ids)
        return ids if self.factors is None else np.column_stack((ids, np.asarray(self.factors)))

    def without(self, positions: Collection[int]) -> "ModelInput":
        """Return the tokens of the input, with their factors, without those at some positions."""
        kept = [place for place in range(len(self.ids)) if place not in positions]
        factors = None if self.factors is None else tuple(self.factors[place] for place in kept)
        return ModelInput(tuple(self.ids[place] for place in kept), factors=factors)


def join_texts(texts: Sequence[Sequence[int]], limit: int | None) -> ModelInput:
    """Return the input of one or two texts, which are cut to fit into `limit` tokens.

    The longer text is cut first, at its end, as in BERT (Devlin et al. 2019). limit: maximum number of tokens with
    special symbols; None: unlimited.
    """
    parts = [list(text) for text in texts]
    cut = 0 if limit is None else max(0, sum(map(len, parts)) + 1 + len(parts) - limit)
    for _ in range(cut):
        longest = max(parts, key=len)
        longest.pop()
    ids = [BOS]
    for part in parts:
        ids += [*part, EOS]
    return ModelInput(tuple(ids), cut=cut)


def join_sentences(sentences: Sequence[Sequence[int]], limit: int | None) -> ModelInput:
    """Return the input of a document, each sentence of which ends with EOS. It is cut at its end.

    Sentences without tokens are left out. limit: as in `join_texts`.
    """
    ids = [BOS]
    for sentence in sentences:
        ids += [*sentence, EOS] if sentence else []
    if len(ids) == 1:
        ids.append(EOS)
    kept = ids if limit is None or len(ids) <= limit else [*ids[: limit - 1], EOS]
    cut = sum(token not in (BOS, EOS) for token in ids[len(kept) - 1 :]) if len(kept) < len(ids) else 0
    return ModelInput(tuple(kept), cut=cut)


def separate_texts(texts: Sequence[Sequence[int]], limit: int | None) -> ModelInput:
    """Return the input of two texts that are encoded separately, each of which is cut to fit into `limit` tokens.

    limit: maximum number of tokens of each text with its special symbols; None: unlimited.
    """
    parts = [join_texts([text], limit) for text in texts]
    return ModelInput(tuple(token for part in parts for token in part.ids), cut=sum(part.cut for part in parts))


def encode_words(tokenizer: Tokenizer, sentences: Sequence[Sequence[str]]) -> list[list[list[int]]]:
    """Return the ids of each word of each sentence, as in a text that contains the words separated by spaces.

    Every word has at least one id: a word without tokens, such as a control character, is UNK.
    """
    between = " " if tokenizer.added_space is None else ""
    texts = [f"{between}{word}" if index else word for words in sentences for index, word in enumerate(words)]
    encoded = iter(tokenizer.encode_batch(texts))
    return [[next(encoded) or [UNK] for _ in words] for words in sentences]


def factored_inputs(
    words: Sequence[Sequence[int]], factors: Sequence[tuple[int, ...]], nothing: tuple[int, ...], limit: int | None
) -> Iterator[ModelInput]:
    """Yield the inputs of a sentence, each word of which is one token with factors; see `word_inputs`.

    words: the ids of each word, of which only the first is read. factors: those of each word. nothing: those of a
    special symbol.
    """
    for each in word_inputs([ids[:1] for ids in words], limit):
        start = each.first - (each.places[0] - 1 if each.places else 0)
        own = factors[start : start + len(each.ids) - 2]
        yield replace(each, factors=(nothing, *own, nothing))


def word_inputs(words: Sequence[Sequence[int]], limit: int | None, leading: int = 0) -> Iterator[ModelInput]:
    """Yield the inputs of a sentence, given the ids of each of its words. Each word is predicted in exactly one input.

    A sentence that does not fit into `limit` tokens is divided into overlapping inputs. In the overlap, a word belongs
    to the input in which it has more context. The tokens of a word beyond the limit are left out.

    leading: number of ids of each word before its first token, which is the place of the word.
    """
    room = None if limit is None else limit - 2
    cut = 0 if room is None else sum(max(0, len(ids) - room) for ids in words)
    words = [ids[:room] for ids in words]
    start = owned = 0
    while True:
        end, size = start, 0
        while end < len(words) and (room is None or size + len(words[end]) <= room):
            size += len(words[end])
            end += 1
        overlap = _overlap(words, start, end, size // 4)
        last = end == len(words)
        until = end if last else end - overlap // 2
        ids, places = [BOS], []
        for index in range(start, end):
            if owned <= index < until:
                places.append(min(len(ids) + leading, len(ids) + len(words[index]) - 1))
            ids += words[index]
        yield ModelInput((*ids, EOS), tuple(places), owned, cut, not last)
        if last:
            return
        start, owned = end - overlap, until


def _overlap(words: Sequence[Sequence[int]], start: int, end: int, tokens: int) -> int:
    """Return the number of words at the end of words[start:end] with at most `tokens` tokens, but not all words."""
    count = size = 0
    while end - count - 1 > start and size + len(words[end - count - 1]) <= tokens:
        count += 1
        size += len(words[end - count])
    return count
