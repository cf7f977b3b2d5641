"""`SourceTags`: determines the tags that precede source texts."""

from collections.abc import Iterable

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.text.symbols import TO, is_inline, source_tags, tag_languages
from dragoman.text.tokenizer import Tokenizer


class SourceTags:
    """Determines the tags of source texts. languages: target languages that can be chosen; empty for a model with a
    single target language that has no tag.
    """

    def __init__(self, source: Tokenizer, meta: Meta | None = None) -> None:
        """meta: metadata with the model's languages; without them, all languages with a tag can be chosen."""
        self._source = source
        self._only = None if meta is None else meta.target_language
        self.languages = (
            tag_languages(source.tags) if meta is None or not meta.target_languages else meta.target_languages
        )

    def of(self, to: str | None = None, tags: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the tags that precede a source text, the tag of the target language first.

        to: the target language, which can be omitted if there is only one. Raises ConfigError if the language is
        missing or unknown, and for an unknown tag.
        """
        if isinstance(tags, str):
            raise TypeError("tags must be a list of strings, not one string")
        others = tuple(dict.fromkeys(tags))
        for tag in others:
            if tag.startswith(TO):
                raise ConfigError(f"{tag!r} names a target language: use --to instead (in Python, to=)")
            if is_inline(tag):
                raise ConfigError(f"{tag!r} cannot be used as a tag: --keep and --glossary insert it automatically")
        chosen = source_tags(self._language(to), others)
        self._source.tag_ids(chosen)  # raises for an unknown tag
        return chosen

    def _language(self, to: str | None) -> str | None:
        known = ", ".join(self.languages)
        if to is None:
            if len(self.languages) > 1:
                raise ConfigError(
                    f"this model has several target languages: choose one with --to (in Python, to=): {known}"
                )
            return self.languages[0] if self.languages else None
        if to in self.languages:
            return to
        if self.languages:
            raise ConfigError(f"this model has no target language {to!r}: choose one of {known}")
        if to == self._only:
            return None
        reason = (
            f"this model has one target language, {self._only}"
            if self._only
            else "this model has no choice of target languages"
        )
        raise ConfigError(f"{reason}: leave out --to {to}")
