"""Film reviews of Maas et al. (2011) as JSON Lines, a balanced selection."""

import json
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

from pydantic import Field

from dragoman.data.downloads.conversions.conversion import Conversion, Original, decode, write_lines

_NAME = re.compile(r"(?:.*/)?((train|test)/(pos|neg)/\d+_(\d+))\.txt")
_LINE_BREAKS = re.compile(r"\s*(?:<br\s*/?>\s*)+")


class ReviewsConversion(Conversion):
    """Objects with the fields `id`, `label` (pos or neg), `rating` (1–4, 7–10) and `text`, half of them positive.

    The training and the development set are from the archive's training set, the test set from its test set, whose
    films are others. The selection and the order follow from the SHA-256 of the names.
    """

    kind: Literal["reviews"] = "reviews"
    train: int = Field(gt=0, description="Reviews for training.")
    dev: int = Field(gt=0, description="Reviews for development.")
    test: int = Field(gt=0, description="Reviews for testing.")

    def names(self) -> tuple[str, ...]:
        """Return the names of the sets."""
        return ("train.jsonl.gz", "dev.jsonl.gz", "test.jsonl.gz")

    def convert(self, originals: Sequence[Original], folder: Path) -> None:
        """Write the sets."""
        (archive,) = originals
        reviews: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for name, content in archive.members("*_*.txt"):
            if match := _NAME.fullmatch(name):
                text = _LINE_BREAKS.sub("\n", decode(content, f"{name} of {archive.address}")).strip()
                review = {"id": match[1], "label": match[3], "rating": int(match[4]), "text": text}
                row = (sha256(match[1].encode()).hexdigest(), json.dumps(review, ensure_ascii=False))
                reviews.setdefault((match[2], match[3]), []).append(row)
        for rows in reviews.values():
            rows.sort()
        for name, part, start, count in (
            ("train", "train", 0, self.train // 2),
            ("dev", "train", self.train // 2, self.dev // 2),
            ("test", "test", 0, self.test // 2),
        ):
            chosen = [reviews.get((part, label), [])[start : start + count] for label in ("pos", "neg")]
            if any(len(rows) < count for rows in chosen):
                raise archive.changed(f"it has too few reviews in {part}")
            write_lines((row for _, row in sorted(chosen[0] + chosen[1])), folder / f"{name}.jsonl.gz")
