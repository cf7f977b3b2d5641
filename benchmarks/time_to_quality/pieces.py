"""The corpus of the peers: Multi30k in joint SentencePiece units, written once."""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dragoman.data.files.lines import open_lines

PIECES = 10_000
"""Vocabulary size of fairseq's recipe: joint, learned on both sides."""

SPECIAL = {"pad": 0, "bos": 1, "eos": 2, "unk": 3}
SIDES = {"source": "en", "target": "de"}
SPLITS = {"train": "train", "valid": "val"}


def write_corpus(folder: Path, data: Path) -> None:
    """Write the corpus to `folder`, unless it exists: one sentence of ids per line (train.source …), as text
    (text/train.source …), the SentencePiece model, and corpus.json, as for benchmarks/training. data: with train.en.gz
    and so on.
    """
    if (folder / "corpus.json").exists():
        return
    import sentencepiece

    shutil.rmtree(folder, ignore_errors=True)
    (folder / "text").mkdir(parents=True)
    for split, name in SPLITS.items():
        for side, language in SIDES.items():
            _write(folder / "text" / f"{split}.{side}", open_lines(data / f"{name}.{language}.gz"))
    sentencepiece.SentencePieceTrainer.train(
        input=[str(folder / "text" / f"train.{side}") for side in SIDES],
        model_prefix=str(folder / "pieces"),
        model_type="bpe",
        vocab_size=PIECES,
        character_coverage=1.0,
        num_threads=1,
        minloglevel=2,
        **{f"{name}_id": number for name, number in SPECIAL.items()},
    )
    processor = processor_of(folder)
    for split in SPLITS:
        for side in SIDES:
            lines = read_lines(folder / "text" / f"{split}.{side}")
            _write(folder / f"{split}.{side}", (" ".join(map(str, ids)) for ids in processor.encode(lines)))
    facts = {"size": processor.get_piece_size(), **SPECIAL}
    (folder / "corpus.json").write_text(json.dumps(facts), "utf-8")


def processor_of(folder: Path) -> Any:
    """Return the SentencePiece model of a corpus."""
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_file=str(folder / "pieces.model"))


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file without line breaks; only line feeds end a line."""
    return path.read_text("utf-8").split("\n")[:-1]


def detokenised(lines: Iterable[str], processor: Any) -> list[str]:
    """Decode lines of ids. Anything else, such as fairseq's <unk>, is an unknown unit."""
    ids = [[int(word) if word.isdigit() else SPECIAL["unk"] for word in line.split()] for line in lines]
    return [processor.decode(each) for each in ids]


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
