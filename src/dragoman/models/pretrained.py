"""Embedding tables that are initialised with word vectors from a file."""

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


class PretrainedConfig(Config):
    """Word vectors that embedding tables are initialised with (Qi et al. 2018), in the text format of word2vec, GloVe
    and fastText.

    A vocabulary entry that is a whole word gets the word's vector, looked up in its own case first and then in lower
    case. Parts of words, special symbols and words that the file lacks keep their random initial values. All vectors of
    a file are scaled by one factor so that their mean squared length is 1; like the other vectors, their elements then
    have variance 1 after the embedding's factor √d. With tied tables, a word in both files gets the source file's
    vector, and the target's share counts only the words that it adds. A model folder contains the tables, so
    translating, resuming and `train.start` do not need the files.
    """

    source: Path | None = Field(None, description="Vectors for the source embeddings; their width must be model.width.")
    target: Path | None = Field(None, description="Vectors for the target embeddings.")
    frozen: bool = Field(
        False,
        description="Do not train the tables that are initialised from a file, including rows without a vector. "
        "Requires model.tie_projection=false if the projection would be frozen too.",
    )

    @model_validator(mode="after")
    def _freezes_something(self) -> "PretrainedConfig":
        if self.frozen and self.source is None and self.target is None:
            raise ValueError("frozen=true without a file would freeze random vectors: give source or target")
        return self

    def check(self, width: int | None) -> None:
        """Check the first lines of each file. Raises DataError for an invalid file, ConfigError for a different width.

        width: the model's; None if it is not known yet.
        """
        for name, path in (("source", self.source), ("target", self.target)):
            if path is not None and vector_width(path) != (width or vector_width(path)):
                raise ConfigError(
                    f"model.embeddings.{name}: {path} has vectors of {vector_width(path)} numbers, but model.width is "
                    f"{width}: set model.width={vector_width(path)}, or use other vectors"
                )

    def freeze(self, source: nn.Module, target: nn.Module, projection: nn.Module) -> None:
        """Freeze the tables. Raises ConfigError if that would freeze the projection too."""
        if not self.frozen:
            return
        for table, path in ((source, self.source), (target, self.target)):
            if path is not None:
                table.requires_grad_(False)
        if not all(parameter.requires_grad for parameter in projection.parameters()):
            raise ConfigError(
                "model.embeddings.frozen would freeze the vocabulary projection too, which is the target's table: set "
                "model.tie_projection=false"
            )

    def fill(self, source: nn.Module, target: nn.Module, tokenizers: Tokenizers) -> dict[str, float]:
        """Copy the vectors into the tables; returns the share of entries with a vector, for each side with a file."""
        shares: dict[str, float] = {}
        taken: set[int] = set()
        for side, path, table, tokenizer in (
            ("source", self.source, source, tokenizers.source),
            ("target", self.target, target, tokenizers.target),
        ):
            if path is None:
                continue
            assert isinstance(table, nn.Embedding)
            already = taken if source is target else set()
            rows = _fill(table, path, tokenizer, already)
            if not rows | already:
                raise DataError(
                    f"model.embeddings.{side}: {path} has no vector for any entry of the {side}'s vocabulary. Is it "
                    "for another language? Word vectors need a vocabulary of words: text.subword.kind=word."
                )
            taken |= rows
            ordinary = tokenizer.size - len(SPECIAL_SYMBOLS) - len(tokenizer.tags)
            shares[side] = round(len(rows) / ordinary, 4)
            info(
                f"Embeddings: {len(rows):,} of {ordinary:,} entries of the {side}'s vocabulary ({shares[side]:.1%}) "
                f"are initialised from {path}" + (", and the table is frozen" if self.frozen else "")
            )
        return shares


@torch.no_grad()
def _fill(table: nn.Embedding, path: Path, tokenizer: Tokenizer, taken: set[int]) -> set[int]:
    """Fill all rows that are not in `taken` and have a vector in the file; returns their indices."""
    names = tokenizer.whole_words()
    found = read_word_vectors(path, {form for name in names if name is not None for form in (name, name.lower())})
    vectors = {
        row: found.get(name, found.get(name.lower()))
        for row, name in enumerate(names)
        if name is not None and row not in taken
    }
    rows = {row: vector for row, vector in vectors.items() if vector is not None}
    if not rows:
        return set()
    values = np.stack(list(rows.values()))
    length = float(np.sqrt((values.astype(np.float64) ** 2).sum(1).mean()))
    if length == 0:
        raise DataError(f"{path}: all vectors of this vocabulary's words are zero; use other vectors.")
    table.weight[torch.tensor(list(rows), device=table.weight.device)] = torch.from_numpy(values / length).to(
        table.weight
    )
    return set(rows)
