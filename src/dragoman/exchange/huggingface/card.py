"""The model card of an exported Hugging Face folder."""

from pathlib import Path

from dragoman.checkpoint.card.markdown import with_section
from dragoman.checkpoint.card.metadata import LIBRARY
from dragoman.checkpoint.folder import CARD

_USE = (
    "FOLDER is the folder of this file, or its name on the Hub. `from_pretrained(FOLDER)` of the Transformers class in "
    "`config.json` (`architectures`) loads the model, and that of `AutoTokenizer` loads its tokenizer. "
    "`dragoman export` wrote the folder, and `dragoman import` reads it."
)


def exported_card(folder: Path) -> str | None:
    """Return the card of a model folder, changed for the Transformers library; None if the folder has no card."""
    path = Path(folder) / CARD
    if not path.is_file():
        return None
    card = path.read_text(encoding="utf-8").replace(f"\nlibrary_name: {LIBRARY}\n", "\nlibrary_name: transformers\n", 1)
    return with_section(card, "Use", [_USE])
