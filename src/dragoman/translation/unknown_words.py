"""`UnknownWords`: a search that replaces unknown words in its outputs by copies or translations of source words."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import warn
from dragoman.data.corpora.lines import has_broken_utf8, open_lines
from dragoman.decode.constraints.constraint import Constraint, Constraints, Edges, tokens_needed
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.fusion import LanguageModelFusion
from dragoman.decode.rules.rule import Rule
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.models.interface import Decoder, Memory, source_mask, tree_map
from dragoman.text.symbols import BOS, UNK
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.unknown_words import Translate, UnknownConfig
from dragoman.translation.constraints.codec import word_edges

_WEIGHTS = 1 << 20
"""Maximum number of attention weights per head in memory at a time."""


class Sentence(NamedTuple):
    """A source text with the settings of its search.

    prefix: ids at the start of its output; kept: the words that replace the UNKs among them. tags: the number of tags
    before the text in the memory. constraints: phrases that its output must contain.
    """

    text: str
    config: SearchConfig
    prefix: Sequence[int] = ()
    kept: tuple[str, ...] = ()
    tags: int = 0
    constraints: tuple[Constraint, ...] = ()


class UnknownWords:
    """Replaces each UNK of a hypothesis by the word of the prefix, or by a copy or translation of a source word.

    The source word is the one with the most decoder attention, summed over its pieces, when the UNK was predicted; the
    end of sentence does not count. Attention is computed in a forced-decoding pass over the finished hypotheses, so
    that the search is not slowed down.
    """

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._tokenizers = tokenizers
        self._readers: dict[UnknownConfig, Translate | None] = {}
        self._attends: bool | None = None

    def search(
        self,
        decoder: Decoder,
        memory: Memory,
        sentences: Sequence[Sentence],
        fusion: LanguageModelFusion | None = None,
    ) -> list[list[Hypothesis]]:
        """Run `decode.search.search` for the memory's B sentences, and fill in `Hypothesis.unknown`.

        fusion: one language model for all sentences. Without a setting, unknown words are copied if the vocabulary has
        any and the decoder attends to the source; otherwise UNK is forbidden. Raises ConfigError for a setting that
        needs attention if the decoder has none, DataError for a dictionary that cannot be read.
        """
        readers = {
            config: self._reader(decoder, memory, config.unknown)
            for config in dict.fromkeys(sentence.config for sentence in sentences)
        }
        resolved = {one: one if reader is None else _with_unknowns(one) for one, reader in readers.items()}
        configs = [resolved[sentence.config] for sentence in sentences]
        prompts, constraints = self._prompts(decoder, memory, configs, sentences)
        rules: list[Rule] = []
        if fusion is not None:
            prompts, rules = fusion.limit_lengths(prompts), [fusion]
        searched = search(decoder, prompts, configs, rules, constraints)
        found = [
            [replace(best, unknown=sentence.kept) for best in hypotheses]
            for sentence, hypotheses in zip(sentences, searched, strict=True)
        ]
        wanted = [
            (row, rank)
            for row, sentence in enumerate(sentences)
            for rank, hypothesis in enumerate(found[row])
            if readers[sentence.config] is not None and hypothesis.tokens.count(UNK) > len(sentence.kept)
        ]
        if not wanted:
            return found
        tokens = [found[row][rank].tokens for row, rank in wanted]
        attention = _attention(decoder, memory, [row for row, _ in wanted], tokens)
        assert attention is not None
        for (row, rank), weights in zip(wanted, attention, strict=True):
            sentence = sentences[row]
            translate = readers[sentence.config]
            assert translate is not None
            words = self._attended(sentence.text, weights[len(sentence.kept) :, sentence.tags :])
            unknown = (*sentence.kept, *(_translated(word, translate) for word in words))
            found[row][rank] = replace(found[row][rank], unknown=unknown)
        return found

    def _prompts(
        self, decoder: Decoder, memory: Memory, configs: Sequence[SearchConfig], sentences: Sequence[Sentence]
    ) -> tuple[Prompts, Constraints | None]:
        prefixes = [sentence.prefix for sentence in sentences]
        if not any(sentence.constraints for sentence in sentences):
            return Prompts.of(decoder, memory, configs, prefixes), None
        needed = [tokens_needed(sentence.constraints) for sentence in sentences]
        constraints = Constraints([sentence.constraints for sentence in sentences], self._edges)
        return Prompts.of(decoder, memory, configs, prefixes, needed), constraints

    @cached_property
    def _edges(self) -> Edges:
        return word_edges(self._tokenizers.target)

    def _reader(self, decoder: Decoder, memory: Memory, config: UnknownConfig | None) -> Translate | None:
        """Return the function that translates unknown words; None if the search must not write any."""
        if config is not None and config not in self._readers:
            self._readers[config] = config.translate(read_dictionary)
            if self._readers[config] is not None and (reason := self._without_words()) is not None:
                warn(f"search.unknown={config.kind} has no effect: {reason}")
        chosen = str if config is None else self._readers[config]
        if chosen is None or self._without_words() is not None:
            return None
        if self._attends is None and len(source_mask(memory)):
            self._attends = _attention(decoder, memory, [0], [(UNK,)]) is not None
        if self._attends is False:
            if config is None:
                return None
            raise ConfigError(
                f"search.unknown={config.kind} needs the source word that an unknown attends to, but this "
                "model's decoder has no attention over the source: set search.unknown=forbid (dragoman translate "
                "--unknown forbid)"
            )
        return chosen

    def _without_words(self) -> str | None:
        """Return why unknown words cannot be replaced, or None if they can."""
        if self._tokenizers.target.lossless:
            return "this model's vocabulary can encode any text, so no word is unknown"
        if self._tokenizers.reads_vectors:
            return "a source of vectors has no words that could replace an unknown"
        return None

    def _attended(self, text: str, weights: Tensor) -> list[str]:
        """Return the word of `text`, with its space, that has the most attention in each row of weights (n, S)."""
        owners, words = self._tokenizers.source.words(text)
        if not words:
            return [""] * len(weights)
        sums = torch.zeros(len(weights), len(words), device=weights.device)
        sums.index_add_(1, torch.tensor(owners, device=weights.device), weights[:, : len(owners)].float())
        return [words[best] for best in sums.argmax(1).tolist()]


def read_dictionary(path: Path) -> dict[str, str]:
    """Read lines of word TAB translation; blank lines are skipped. Raises DataError naming the file and the line."""
    words: dict[str, str] = {}
    for number, line in enumerate(open_lines(path), start=1):
        if not line.strip():
            continue
        word, *translations = (column.strip() for column in line.split("\t"))
        if has_broken_utf8(line):
            raise DataError(f"{path}, line {number}: broken UTF-8; convert the file (for example with iconv).")
        if len(translations) != 1 or not word or not translations[0]:
            raise DataError(f"{path}, line {number}: not a word, a tab and its translation: {line[:60]!r}.")
        words.setdefault(word, translations[0])
    if not words:
        raise DataError(f"{path} is empty; a dictionary has lines of word TAB translation.")
    return words


def unknown_words(tokenizers: Tokenizers, text: str, ids: Sequence[int]) -> tuple[str, ...]:
    """Return the words of a target text that the vocabulary lacks, with their spaces; ids: the text's tokens."""
    if UNK not in ids:
        return ()
    owners, words = tokenizers.target.words(text)
    return tuple(words[owner] for owner, number in zip(owners, ids, strict=True) if number == UNK)


@torch.no_grad()
def _attention(
    decoder: Decoder, memory: Memory, rows: Sequence[int], tokens: Sequence[Sequence[int]]
) -> list[Tensor] | None:
    """Return (n, S) for each hypothesis: the attention while its n UNKs are predicted. rows: their sentences. None if
    the decoder has no attention.
    """
    source = source_mask(memory)
    device = source.device
    sentences = torch.tensor(rows, device=device)
    inputs = torch.full((len(rows), max(map(len, tokens))), BOS, dtype=torch.int64)
    unknown = torch.zeros(inputs.shape, dtype=torch.bool)
    for row, written in enumerate(tokens):
        inputs[row, 1 : len(written)] = torch.tensor(written[:-1], dtype=torch.int64)
        unknown[row, : len(written)] = torch.tensor(written) == UNK
    inputs, unknown = inputs.to(device), unknown.to(device)
    state = decoder.start(tree_map(lambda part: part[sentences], memory), attention=True)
    found: list[list[Tensor]] = [[] for _ in rows]
    # a few steps at a time, so that the weights of a long text are not all in memory
    size = max(1, _WEIGHTS // max(1, len(rows) * source.size(1)))
    for some, wanted in zip(torch.split(inputs, size, 1), torch.split(unknown, size, 1), strict=True):
        output, state = decoder.step(some, state)
        if output.attention is None:
            return None
        for row, weights in enumerate(output.attention):
            found[row].append(weights[wanted[row]])
    return [torch.cat(each) for each in found]


def _with_unknowns(config: SearchConfig) -> SearchConfig:
    """Return the settings with UNK allowed."""
    return config.model_copy(update={"forbid": tuple(token for token in config.forbid if token != UNK)})


def _translated(word: str, translate: Translate) -> str:
    """Return a word's translation with the spaces around the word."""
    inner = word.strip(" ")
    return word.replace(inner, translate(inner), 1) if inner else word
