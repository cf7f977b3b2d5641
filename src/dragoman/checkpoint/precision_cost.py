"""`PrecisionCost`: what int8 costs in translation quality, measured on the validation set, in `precision.json`."""

import json
from pathlib import Path

from pydantic import Field

from dragoman.base.errors import ConfigError
from dragoman.base.files import atomic_write
from dragoman.base.log import warn
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings
from dragoman.base.table import Table
from dragoman.checkpoint.card.markdown import with_section
from dragoman.checkpoint.folder import CARD, PRECISION

MAX_BLEU_LOSS = 0.2
"""The largest loss of BLEU for which int8 is chosen automatically, in points."""

_FORMAT_VERSION = 1


class PrecisionScores(Config):
    """The scores of one precision on the validation set."""

    bleu: float = Field(description="BLEU.")
    chrf: float = Field(description="chrF.")


class Int8Cost(PrecisionScores):
    """The scores of int8, compared with float32."""

    bits: int = Field(description="Number of bits of the codes: 7 on a processor with AVX2 alone, otherwise 8.")
    differing_lines: int = Field(description="Number of lines whose translation differs from that of float32.")
    speed: float = Field(description="Speed on the machine of the measurement, relative to float32.")


class PrecisionCost(Config):
    """The contents of `precision.json`."""

    format_version: int = Field(_FORMAT_VERSION, description="Version of the file's layout.")
    model: str = Field(description="Fingerprint of the model folder.")
    data: str = Field(description="Name of the validation set.")
    data_fingerprint: str = Field(description="SHA-256 of the measured sentence pairs.")
    sentences: int = Field(description="Number of measured sentence pairs, which are the first ones of the set.")
    set_size: int = Field(description="Number of sentence pairs of the validation set.")
    beam: int = Field(description="Beam size.")
    bleu_signature: str = Field(description="Signature of BLEU.")
    chrf_signature: str = Field(description="Signature of chrF.")
    float32: PrecisionScores = Field(description="Scores in float32.")
    int8: tuple[Int8Cost, ...] = Field(description="Scores in int8, for each number of bits that was measured.")

    def of_bits(self, bits: int) -> Int8Cost | None:
        """Return the cost of codes with this number of bits, or None if it was not measured."""
        return next((each for each in self.int8 if each.bits == bits), None)

    def bleu_loss(self, cost: Int8Cost) -> float:
        """Return by how many points the BLEU of int8 is lower than that of float32; negative if it is higher."""
        return self.float32.bleu - cost.bleu

    def summary(self, cost: Int8Cost) -> str:
        """Describe the cost in a clause."""
        change = cost.bleu - self.float32.bleu
        return (
            f"BLEU changes by {change:+z.2f} on {self.sentences:,} validation sentences, "
            f"{cost.differing_lines:,} of which are translated differently"
        )

    def _table(self) -> Table:
        rows = [("float32", f"{self.float32.bleu:.2f}", f"{self.float32.chrf:.2f}", "–", "1")]
        rows += [
            (
                f"int8 ({each.bits} bits)",
                f"{each.bleu:.2f}",
                f"{each.chrf:.2f}",
                f"{each.differing_lines:,} of {self.sentences:,} ({each.differing_lines / self.sentences:.1%})",
                f"{each.speed:.2f}",
            )
            for each in self.int8
        ]
        return Table([("precision", "BLEU", "chrF", "lines that differ", "speed"), *rows])

    @property
    def _measured(self) -> str:
        extent = "" if self.sentences == self.set_size else f"the first {self.sentences:,} of "
        return (
            f"Measured on the CPU with beam {self.beam} on {extent}{self.set_size:,} pairs of {self.data}. "
            "The speed is that of the machine that measured it."
        )

    def card_section(self) -> list[str]:
        """Return the lines of the section of the model card."""
        return [self._measured, "", *self._table().markdown()]

    def __str__(self) -> str:
        return f"{self._measured}\n\n{self._table().text()}"


def write_precision_cost(folder: Path, cost: PrecisionCost) -> None:
    """Write the measurement to a model folder and its card. A section of an earlier measurement is replaced."""
    content = cost.model_dump(mode="json")
    atomic_write(folder / PRECISION, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    card = folder / CARD
    if card.is_file():
        atomic_write(card, with_section(card.read_text(encoding="utf-8"), "Precision", cost.card_section()))


def read_precision_cost(folder: Path) -> PrecisionCost | None:
    """Return the measurement in a model folder. If the file is damaged, warns and returns None, as without a file."""
    path = folder / PRECISION
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and content.get("format_version") == _FORMAT_VERSION:
            return parse_settings(content, PrecisionCost, str(path))
        reason = f"it does not have format version {_FORMAT_VERSION}"
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError, ConfigError) as error:
        reason = str(error).splitlines()[0]
    warn(f"{path} is ignored: {reason}")
    return None
