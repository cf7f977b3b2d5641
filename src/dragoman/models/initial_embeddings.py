"""Initialisation of embedding tables with word vectors from a file."""

from pathlib import Path

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.log import info
from dragoman.base.settings.config import Config
from dragoman.data.word_vectors import read_word_vectors, vector_width
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import Tokenizers


class InitialEmbeddings(Config):
    """Pretrained word vectors to initialise embedding tables (Qi et al. 2018).

    Files are in the text format of word2vec, GloVe and fastText. A vocabulary entry that is a whole word is initialised
    with the word's vector, which is looked up as written and then in lower case. Subwords, special symbols and words
    that the file does not contain keep their random initial values. All vectors of a file are scaled by the same
    factor, so that their mean squared length is 1. After multiplication by √d, their elements have variance 1, as those
    of randomly initialised vectors have. If the tables are tied, the source file's vector is used for words in both
    files, and the target's fraction counts only words that are not in the source file. A model folder contains the
    tables, so translation, resumption and `train.start` do not require the files.
    """

    source: Path | None = Field(
        None, description="File with vectors for the source embeddings, which must have the width model.width."
    )
    target: Path | None = Field(
        None, description="File with vectors for the target embeddings, which must have the width model.width."
    )
    frozen: bool = Field(
        False,
        description="Do not train embedding tables initialised from a file, including rows without a vector. "
        "Requires model.tie_projection=false if the projection would be frozen too.",
    )

    @model_validator(mode="after")
    def _check_frozen_files(self) -> "InitialEmbeddings":
        if self.frozen and self.source is None and self.target is None:
            raise ValueError("frozen=true without a file would freeze random vectors: set source or target")
        return self

    def check(self, width: int | None) -> None:
        """Check the first lines of each file. Raises DataError for an invalid file, ConfigError for a wrong width.

        width: the model width, or None if it is not yet determined.
        """
        for name, path in (("source", self.source), ("target", self.target)):
            if path is not None and vector_width(path) != (width or vector_width(path)):
                raise ConfigError(
                    f"model.embeddings.{name}: the vectors in {path} have width {vector_width(path)}, but model.width "
                    f"is {width}: set model.width={vector_width(path)} or use other vectors"
                )

    def freeze(self, source: nn.Module, target: nn.Module, projection: nn.Module) -> None:
        """Freeze the tables if `frozen` is set. Raises ConfigError if this would freeze the projection too."""
        if not self.frozen:
            return
        for table, path in ((source, self.source), (target, self.target)):
            if path is not None:
                table.requires_grad_(False)
        if not all(parameter.requires_grad for parameter in projection.parameters()):
            raise ConfigError(
                "model.embeddings.frozen would also freeze the vocabulary projection, which is tied to the target "
                "embeddings: set model.tie_projection=false"
            )

    def fill(self, source: nn.Module, target: nn.Module, tokenizers: Tokenizers) -> dict[str, float]:
        """Copy the vectors into the tables; returns the fraction of entries with a vector for each side with a file."""
        fractions: dict[str, float] = {}
        filled: set[int] = set()
        for side, path, table, tokenizer in (
            ("source", self.source, source, tokenizers.source),
            ("target", self.target, target, tokenizers.target),
        ):
            if path is None:
                continue
            assert isinstance(table, nn.Embedding)
            filled_before = filled if source is target else set()
            rows = _fill(table, path, tokenizer, filled_before)
            if not rows | filled_before:
                raise DataError(
                    f"model.embeddings.{side}: {path} has no vector for any entry of the {side} vocabulary. Is the "
                    "file for another language? Word vectors require a word vocabulary: text.subword.kind=word."
                )
            filled |= rows
            entries = tokenizer.size - len(SPECIAL_SYMBOLS) - len(tokenizer.tags)
            fractions[side] = round(len(rows) / entries, 4)
            info(
                f"Embeddings: {len(rows):,} of {entries:,} entries of the {side} vocabulary ({fractions[side]:.1%}) "
                f"are initialised from {path}" + (", and the table is frozen" if self.frozen else "")
            )
        return fractions


@torch.no_grad()
def _fill(table: nn.Embedding, path: Path, tokenizer: Tokenizer, skip: set[int]) -> set[int]:
    """Fill the rows that have a vector in the file, except those in `skip`; returns their indices."""
    words = tokenizer.whole_words()
    file_vectors = read_word_vectors(
        path, {form for word in words if word is not None for form in (word, word.lower())}
    )
    vectors = {
        row: file_vectors.get(word, file_vectors.get(word.lower()))
        for row, word in enumerate(words)
        if word is not None and row not in skip
    }
    rows = {row: vector for row, vector in vectors.items() if vector is not None}
    if not rows:
        return set()
    values = np.stack(list(rows.values()))
    length = float(np.sqrt((values.astype(np.float64) ** 2).sum(1).mean()))
    if length == 0:
        raise DataError(f"{path}: the vectors of all words in the vocabulary are zero. Use other vectors.")
    table.weight[torch.tensor(list(rows), device=table.weight.device)] = torch.from_numpy(values / length).to(
        table.weight
    )
    return set(rows)
