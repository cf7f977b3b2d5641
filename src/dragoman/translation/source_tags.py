"""`SourceTags`: the tags that precede source texts, for a target language and other tags."""

from collections.abc import Iterable

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.text.symbols import TO, is_inline, source_tags, tag_languages
from dragoman.text.tokenizer import Tokenizer


class SourceTags:
    """Chooses the tags of source texts. languages: target languages to choose from; empty if the model writes only one
    and has no tag for it.
    """

    def __init__(self, source: Tokenizer, meta: Meta | None = None) -> None:
        """meta: contains the model's languages; if it has none, all languages with a tag can be chosen."""
        self._source = source
        self._only = None if meta is None else meta.target_language
        self.languages = (
            tag_languages(source.tags) if meta is None or not meta.target_languages else meta.target_languages
        )

    def of(self, to: str | None = None, tags: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the tags that precede a source text, the language's first. `to` can be omitted if there is only one.

        Raises ConfigError if the language is missing or unknown, and for an unknown tag.
        """
        if isinstance(tags, str):
            raise TypeError("tags must be a list of strings, not one string")
        others = tuple(dict.fromkeys(tags))
        for tag in others:
            if tag.startswith(TO):
                raise ConfigError(f"{tag!r} names a target language: use --to instead (in Python, to=)")
            if is_inline(tag):
                raise ConfigError(f"{tag!r} is not a tag: --keep and --glossary insert it where needed")
        chosen = source_tags(self._language(to), others)
        self._source.tag_ids(chosen)  # raises for an unknown tag
        return chosen

    def _language(self, to: str | None) -> str | None:
        known = ", ".join(self.languages)
        if to is None:
            if len(self.languages) > 1:
                raise ConfigError(
                    f"this model writes several languages: choose one with --to (in Python, to=): {known}"
                )
            return self.languages[0] if self.languages else None
        if to in self.languages:
            return to
        if self.languages:
            raise ConfigError(f"this model does not write {to!r}; choose from {known}")
        if to == self._only:
            return None
        one = f"this model writes one language, {self._only}" if self._only else "this model has no languages to choose"
        raise ConfigError(f"{one}: leave out --to {to}")
