"""`ShownModel`: the base class of loaded models, which a notebook shows as a card."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dragoman.base.errors import ConfigError
from dragoman.base.notebook import Card, Note, Part, Shown
from dragoman.base.table import Table
from dragoman.checkpoint.meta import Meta
from dragoman.models.kinds.registry import ABILITIES, ModelKind

_LABELS = 12
"""Maximum number of labels that are listed."""


class ShownModel(Shown):
    """A loaded model. The card has what the object knows of it: attributes that it lacks are left out.

    kind: the record of its kind. meta: its metadata.
    """

    kind: ModelKind
    meta: Meta

    def card(self) -> Card:
        """Return the languages, the sizes, the engine, the abilities, and how good the model is."""
        title = self.kind.title[0].upper() + self.kind.title[1:]
        if languages := self.kind.languages(self.meta.source_language, self.meta.target_language):
            title += f", {languages}"
        return Card(title, [dict(self._facts()), *self._quality()])

    def _facts(self) -> Iterator[tuple[str, str]]:
        meta = self.meta
        if meta.target_languages:
            yield "Target languages", ", ".join(meta.target_languages)
        if meta.tags:
            yield "Tags", ", ".join(meta.tags)
        if labels := getattr(self, "labels", ()):
            rest = f" and {len(labels) - _LABELS:,} more" if len(labels) > _LABELS else ""
            yield "Labels", ", ".join(labels[:_LABELS]) + rest
        if parameters := _parameters(self):
            yield "Parameters", f"{parameters:,}"
        if vocabulary := _vocabulary(self):
            yield "Vocabulary", vocabulary
        if engine := _engine(getattr(self, "engine", None)):
            yield "Engine", engine
        if meta.step and self.kind.has_updates:
            yield "Training", f"{meta.step:,} updates{', not finished' if meta.unfinished else ''}"
        yield "It can", ", ".join(phrase for name, phrase in ABILITIES.items() if name in self.kind.abilities)
        if meta.licence:
            yield "Licence", meta.licence

    def _quality(self) -> Iterator[Part]:
        if self.meta.scores:
            rows = [(each.metric, f"{each.value:.2f}", each.data) for each in self.meta.scores]
            yield Table([("metric", "value", "measured on"), *rows])
        if self.meta.verdict is not None:
            yield self.meta.verdict.sentence
        for score in self.meta.scores:
            if score.signature:
                yield Note(f"{score.metric}: {score.signature}")


def _parameters(model: Any) -> int:
    """Return the number of parameters; 0 for a model without them, and for an engine that does not show its module."""
    with suppress(ConfigError, AttributeError):
        return sum(each.numel() for each in model.model.parameters())
    return 0


def _vocabulary(model: Any) -> str:
    if (tokenizers := getattr(model, "tokenizers", None)) is not None:
        source, target = f"{tokenizers.sizes.source:,}", f"{tokenizers.sizes.target:,}"
        if tokenizers.sizes.vectors:
            return f"{target} entries; the source consists of vectors of width {source}"
        if tokenizers.source is tokenizers.target:
            return f"{source} entries, shared by both languages"
        return f"{source} entries of the source, {target} of the target"
    tokenizer = getattr(model, "tokenizer", None)
    return "" if tokenizer is None else f"{tokenizer.size:,} entries"


def _engine(engine: Any) -> str:
    """Return the name and the precision of an engine. A router passes requests to its preferred engine."""
    if engine is None:
        return ""
    preferred = getattr(engine, "preferred", engine)
    return f"{getattr(preferred, 'name', None) or type(preferred).__name__}, {engine.precision}"
