"""`UnknownWords`: replaces unknown words in search results with copies or translations of source words."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import warn
from dragoman.data.files.lines import has_broken_utf8, open_lines
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Row
from dragoman.models.interface import Decoder, Memory, source_mask, tree_map
from dragoman.text.normalization import normalise
from dragoman.text.symbols import BOS, UNK
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.unknown_words import Translate, UnknownConfig

_MAX_WEIGHTS = 1 << 20
"""Maximum number of attention weights per head in memory at a time."""


class UnknownWords:
    """Replaces each UNK of a hypothesis with a word of the prefix, or with a copy or translation of a source word.

    The source word is the word that receives the most decoder attention, summed over its pieces, when the UNK is
    predicted; the end of sentence is ignored. Attention is computed in a forced-decoding pass over the finished
    hypotheses, so that the search is not slowed down.
    """

    def __init__(self, tokenizers: Tokenizers) -> None:
        self._tokenizers = tokenizers
        self._translators: dict[UnknownConfig, Translate | None] = {}
        self._has_attention: bool | None = None

    def configs(self, decoder: Decoder, memory: Memory, rows: Sequence[Row]) -> list[SearchConfig]:
        """Return the search settings of each row of the memory, with UNK allowed if it will be replaced.

        By default, unknown words are copied if the vocabulary cannot encode all text and the decoder attends to the
        source; otherwise UNK is forbidden. Raises ConfigError for a setting that needs attention if the decoder has no
        attention, DataError for a dictionary that cannot be read.
        """
        own = [row.decoding for row in rows if isinstance(row.decoding, SearchConfig)]
        resolved = {
            config: config if self._reader(decoder, memory, config.unknown) is None else _allow_unknown(config)
            for config in dict.fromkeys(own)
        }
        return [resolved[config] for config in own]

    def replaced(
        self, decoder: Decoder, memory: Memory, rows: Sequence[Row], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row with the words of its UNKs, as `Hypothesis.unknown`."""
        results = [
            [replace(each, unknown=row.prefix.unknown) if row.prefix.unknown else each for each in hypotheses]
            for row, hypotheses in zip(rows, found, strict=True)
        ]
        incomplete: list[tuple[int, int, Translate]] = []
        for number, row in enumerate(rows):
            assert isinstance(row.decoding, SearchConfig)
            if (translate := self._reader(decoder, memory, row.decoding.unknown)) is None:
                continue
            for rank, hypothesis in enumerate(results[number]):
                if hypothesis.tokens.count(UNK) > len(row.prefix.unknown):
                    incomplete.append((number, rank, translate))
        if not incomplete:
            return results
        tokens = [results[number][rank].tokens for number, rank, _ in incomplete]
        attention = _attention(decoder, memory, [number for number, _, _ in incomplete], tokens)
        assert attention is not None
        for (number, rank, translate), weights in zip(incomplete, attention, strict=True):
            row = rows[number]
            words = self._attended_words(row.text, weights[len(row.prefix.unknown) :, row.tags :])
            unknown = (*row.prefix.unknown, *(translated(word, translate) for word in words))
            results[number][rank] = replace(results[number][rank], unknown=unknown)
        return results

    def _reader(self, decoder: Decoder, memory: Memory, config: UnknownConfig | None) -> Translate | None:
        """Return the function that translates unknown words; None if the search must not generate unknown words."""
        if config is not None and config not in self._translators:
            self._translators[config] = config.translate(read_dictionary)
            if self._translators[config] is not None and (reason := self._reason_without_effect()) is not None:
                warn(f"search.unknown={config.kind} has no effect: {reason}")
        translate = str if config is None else self._translators[config]
        if translate is None or self._reason_without_effect() is not None:
            return None
        if self._has_attention is None and len(source_mask(memory)):
            self._has_attention = _attention(decoder, memory, [0], [(UNK,)]) is not None
        if self._has_attention is False:
            if config is None:
                return None
            raise ConfigError(
                f"search.unknown={config.kind} needs attention over the source, which this model's decoder does not "
                "have: set search.unknown=forbid (dragoman translate --unknown forbid)"
            )
        return translate

    def _reason_without_effect(self) -> str | None:
        """Return the reason why unknown words cannot be replaced; None if they can."""
        if self._tokenizers.target.lossless:
            return "this model's vocabulary can encode any text, so no word is unknown"
        if self._tokenizers.reads_vectors:
            return "the sources of this model are vectors, which have no words that could replace an unknown word"
        return None

    def _attended_words(self, text: str, weights: Tensor) -> list[str]:
        """Return the word of `text`, with its space, that receives the most attention in each row of weights (n, S)."""
        owners, words = self._tokenizers.source.words(text)
        if not words:
            return [""] * len(weights)
        sums = torch.zeros(len(weights), len(words), device=weights.device)
        sums.index_add_(1, torch.tensor(owners, device=weights.device), weights[:, : len(owners)].float())
        return [words[best] for best in sums.argmax(1).tolist()]


def read_dictionary(path: Path) -> dict[str, str]:
    """Return translations by word (NFC), from lines of the form word TAB translation. Blank lines are skipped.

    Raises DataError, with the file and the line number, for an invalid line.
    """
    words: dict[str, str] = {}
    for number, line in enumerate(open_lines(path), start=1):
        if not line.strip():
            continue
        word, *translations = (column.strip() for column in line.split("\t"))
        if has_broken_utf8(line):
            raise DataError(f"{path}, line {number}: broken UTF-8; convert the file (for example with iconv).")
        if len(translations) != 1 or not word or not translations[0]:
            raise DataError(f"{path}, line {number}: expected a word, a tab and its translation, not {line[:60]!r}.")
        words.setdefault(normalise(word, "nfc"), translations[0])
    if not words:
        raise DataError(f"{path} is empty: each line of a dictionary consists of a word, a tab and its translation.")
    return words


def unknown_words(tokenizers: Tokenizers, text: str, ids: Sequence[int]) -> tuple[str, ...]:
    """Return the words of a target text that contain UNK, with their spaces. ids: the tokens of the text."""
    if UNK not in ids:
        return ()
    owners, words = tokenizers.target.words(text)
    return tuple(words[owner] for owner, number in zip(owners, ids, strict=True) if number == UNK)


@torch.no_grad()
def _attention(
    decoder: Decoder, memory: Memory, rows: Sequence[int], tokens: Sequence[Sequence[int]]
) -> list[Tensor] | None:
    """Return the attention (n, S) while the n UNKs of each hypothesis are predicted; None if the decoder has none.

    rows: the index of each hypothesis's sentence in the memory. tokens: the ids of each hypothesis.
    """
    source = source_mask(memory)
    device = source.device
    sentences = torch.tensor(rows, device=device)
    inputs = torch.full((len(rows), max(map(len, tokens))), BOS, dtype=torch.int64)
    unknown = torch.zeros(inputs.shape, dtype=torch.bool)
    for row, output_ids in enumerate(tokens):
        inputs[row, 1 : len(output_ids)] = torch.tensor(output_ids[:-1], dtype=torch.int64)
        unknown[row, : len(output_ids)] = torch.tensor(output_ids) == UNK
    inputs, unknown = inputs.to(device), unknown.to(device)
    state = decoder.start(tree_map(lambda part: part[sentences], memory), attention=True)
    selected: list[list[Tensor]] = [[] for _ in rows]
    # several steps at a time, to limit the number of weights in memory
    size = max(1, _MAX_WEIGHTS // max(1, len(rows) * source.size(1)))
    for chunk, is_unknown in zip(torch.split(inputs, size, 1), torch.split(unknown, size, 1), strict=True):
        output, state = decoder.step(chunk, state)
        if output.attention is None:
            return None
        for row, weights in enumerate(output.attention):
            selected[row].append(weights[is_unknown[row]])
    return [torch.cat(each) for each in selected]


def _allow_unknown(config: SearchConfig) -> SearchConfig:
    """Return the settings with UNK allowed."""
    return config.model_copy(update={"forbid": tuple(token for token in config.forbid if token != UNK)})


def translated(word: str, translate: Translate) -> str:
    """Return the translation of a word, with the word's leading and trailing spaces."""
    inner = word.strip(" ")
    return word.replace(inner, translate(inner), 1) if inner else word
