"""Vectors of texts: the mean of an encoder's states, scaled to length 1, whose scalar product is a similarity."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.files import atomic_file
from dragoman.base.progress import Progress
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.data.labelled.corpus import LabelledCorpusConfig
from dragoman.data.labelled.examples import LabelledText
from dragoman.data.labelled.read import read_labelled
from dragoman.inference.abilities import SupportsVectors

_WINDOW = 1024
"""Number of texts whose vectors are computed before they are written."""


def write_vectors(
    predictor: SupportsVectors, source: str | Path, output: str | Path | TextIO, settings: Overrides, batch_tokens: int
) -> int:
    """Write the vector of each text of a file in input order. Returns their number.

    output: a file whose name ends in .npy, to which an array (N, d) float32 is written; another file or an open file,
    to which one JSON object per text is written. A pair of texts has one vector. Raises the errors of `read_labelled`.
    """
    examples = read_texts(source, settings)
    if isinstance(output, str | Path):
        with atomic_file(Path(output)) as path:
            if Path(output).suffix == ".npy":
                with path.open("wb") as array_file:
                    np.save(array_file, predictor.vectors(examples, batch_tokens=batch_tokens))
                return len(examples)
            with path.open("w", encoding="utf-8", newline="\n") as file:
                return _write_lines(predictor, examples, file, batch_tokens)
    return _write_lines(predictor, examples, output, batch_tokens)


def read_texts(source: str | Path, settings: Overrides = (), labelled: bool = False) -> list[LabelledText]:
    """Return the texts, or pairs of texts, of a file in any format of a labelled corpus.

    labelled: whether they must have labels. Raises ConfigError for an unknown setting, DataError if the file cannot be
    read.
    """
    values = all_overrides({"path": str(source)}, settings)
    return read_labelled(load_settings(None, values, LabelledCorpusConfig), labelled)


def similarities(predictor: SupportsVectors, pairs: Sequence[LabelledText]) -> list[float]:
    """Return the cosine (−1 to 1) of the vectors of the two texts of each pair. Raises DataError for single texts."""
    if any(len(pair.texts) != 2 for pair in pairs):
        raise DataError("similarities need pairs of texts, but the file contains single texts: select both columns")
    vectors = predictor.vectors([text for pair in pairs for text in pair.texts])
    return list(map(float, (vectors[::2].astype(np.float64) * vectors[1::2]).sum(1)))


def _write_lines(predictor: SupportsVectors, examples: Sequence[LabelledText], file: TextIO, batch_tokens: int) -> int:
    with Progress("Computing vectors", "texts", len(examples)) as progress:
        for start in range(0, len(examples), _WINDOW):
            window = examples[start : start + _WINDOW]
            vectors = predictor.vectors(window, batch_tokens=batch_tokens, first=start + 1)
            for number, (example, vector) in enumerate(zip(window, vectors, strict=True), start + 1):
                values = [float(f"{value:.8g}") for value in vector]
                file.write(json.dumps({"id": example.id or str(number), "vector": values}) + "\n")
            progress.update(start + len(window))
    return len(examples)


def check_output_format(output_format: str) -> None:
    """Raise ConfigError for a format that vectors do not have."""
    if output_format != "jsonl":
        raise ConfigError(
            f"vectors cannot be written in the format {output_format}: use jsonl, or an output file that ends in .npy"
        )
