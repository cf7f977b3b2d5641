"""Conversions between model folders of n-gram language models and ARPA files."""

import hashlib
from pathlib import Path

import torch

from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.folder import load_model_folder, read_config, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import model_parameters
from dragoman.models.kinds.ngram import NgramModel
from dragoman.statistical.ngrams.arpa_reader import read_arpa
from dragoman.statistical.ngrams.arpa_writer import arpa_words, write_arpa
from dragoman.text.symbols import SPECIAL_SYMBOLS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, Tokenizers
from dragoman.text.vocabularies.whitespace import WhitespaceConfig, WhitespaceTokenizer


def import_arpa(path: Path, out: Path, vocabulary_of: Path | None) -> None:
    """Convert an ARPA file to a new model folder.

    vocabulary_of: the model folder whose target vocabulary the file uses, with the names of `arpa_words`; None: the
    words of the file are the vocabulary. Raises DataError, as `read_arpa` does.
    """
    tokenizer: Tokenizer
    if vocabulary_of is None:
        arpa = read_arpa(path)
        tokenizer = WhitespaceTokenizer(arpa.words)
    else:
        tokenizer = Tokenizers.load(vocabulary_of).target
        words = arpa_words(tokenizer)[: tokenizer.size - len(tokenizer.tags)]
        ids = {word: number for number, word in enumerate(words) if number >= len(SPECIAL_SYMBOLS)}
        arpa = read_arpa(path, ids, tokenizer.size)
    model = NgramModel.of(arpa.tables)
    if vocabulary_of is None:
        text = TextConfig(subword=WhitespaceConfig(), normalization="none").model_dump(mode="json")
    else:
        text = read_config(vocabulary_of).get("text", {})
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    meta = Meta(step=0, origin=f"{path.name}, SHA-256 {digest}")
    config = dump_yaml({"text": text, "model": model.config.model_dump(mode="json")})
    write_model_folder(out, model_parameters(model), config, Tokenizers(tokenizer, tokenizer), meta)


def export_arpa(folder: Path, out: Path, dialect: str) -> None:
    """Write the model of a folder as a new ARPA file. Raises ConfigError for an unknown dialect."""
    loaded = load_model_folder(folder, torch.device("cpu"), "export")
    write_arpa(out, loaded.model, loaded.tokenizers.target, dialect)
