"""`InspectedTranslator`: a translation model whose attention and word alignments can be compared."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.inference.abilities import LoadedObject, SupportsInspect, SupportsTranslate, missing_members
from dragoman.inference.load import require
from dragoman.inference.translation.alignment import Aligner, AttentionAligner
from dragoman.inference.translation.codec import Codec
from dragoman.inference.translation.result import PairScore
from dragoman.models.attention_weights import AttentionChoice
from dragoman.statistical.alignment.links import Alignment
from dragoman.text.tokenizers import Tokenizers


class InspectedTranslator(SupportsTranslate, SupportsInspect, Protocol):
    """A model that translates and shows its computation, with the members of `Translator` that comparisons need."""

    @property
    def meta(self) -> Meta:
        """The metadata of the model, with its languages."""
        ...

    @property
    def tokenizers(self) -> Tokenizers:
        """The tokenizers of source and target."""
        ...

    @property
    def codec(self) -> Codec:
        """The conversion of texts to ids."""
        ...

    @property
    def aligner(self) -> Aligner | None:
        """The word aligner in the model folder, if there is one."""
        ...

    def attention_aligner(
        self, tags: Sequence[str] = (), attention: AttentionChoice | None = None
    ) -> AttentionAligner | None:
        """Return the aligner by the model's attention; see `Translator.attention_aligner`."""
        ...

    def score(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        batch_size: int = 64,
        to: str | None = None,
        tags: Iterable[str] = (),
    ) -> list[PairScore]:
        """Return the log-probability of each target given its source; see `Translator.score`."""
        ...

    def align(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        batch_size: int = 64,
        *,
        to: str | None = None,
    ) -> list[Alignment]:
        """Return the word alignment of each pair; see `Translator.align`."""
        ...


def inspected_translator(model: LoadedObject, name: object = "the model") -> InspectedTranslator:
    """Return a loaded model as a translator to compare. name: of the model, for messages.

    Raises ModelError for a kind of model that does not translate, and ConfigError for a translator of another kind
    that lacks a member.
    """
    found: InspectedTranslator = require(model, "translate", name)  # type: ignore[assignment]
    if missing := missing_members(found, InspectedTranslator):
        raise ConfigError(f"{name} cannot be compared, because {type(model).__name__} has no {', '.join(missing)}")
    return found
