"""What can be done with a model folder, by the kind of its model."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Use:
    """name: of such a model; does: what it can do; commands and python: how it is asked to."""

    name: str
    does: str
    commands: str
    python: str

    def __str__(self) -> str:
        return f"a {self.name}, which {self.does}: {self.commands}, or {self.python} in Python"


USES: Mapping[str, Use] = {
    "encoder_decoder": Use("translation model", "translates", "`dragoman translate`", "`Translator.load`"),
    "decoder_only": Use(
        "language model", "continues and scores text", "`dragoman generate` and `score`", "`LanguageModel.load`"
    ),
}
