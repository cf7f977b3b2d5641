"""`SourceTags`: the tags that a model's source texts get when a target language, or other tags, are asked for."""

from collections.abc import Iterable

from dragoman.base.errors import ConfigError
from dragoman.checkpoint.meta import Meta
from dragoman.text.symbols import TO, is_inline, source_tags, tag_languages
from dragoman.text.tokenizer import Tokenizer


class SourceTags:
    """languages: those that can be chosen, empty where the model writes one and has no tag for it."""

    def __init__(self, source: Tokenizer, meta: Meta | None = None) -> None:
        """meta: what the model was trained on; where it names no tag_languages, all that have a tag can be chosen."""
        self._source = source
        self._only = None if meta is None else meta.target_language
        self.languages = (
            tag_languages(source.tags) if meta is None or not meta.target_languages else meta.target_languages
        )

    def of(self, to: str | None = None, tags: Iterable[str] = ()) -> tuple[str, ...]:
        """Those that stand before a source text, the language's first. `to` can be left out where there is only one.

        Raises ConfigError where the language is missing or unknown, and for a tag that the vocabulary does not have.
        """
        if isinstance(tags, str):
            raise TypeError("tags is a list of strings, not one string")
        others = tuple(dict.fromkeys(tags))
        for tag in others:
            if tag.startswith(TO):
                raise ConfigError(f"the target language is not given as the tag {tag!r}: use --to (in Python, to=)")
            if is_inline(tag):
                raise ConfigError(f"{tag!r} is no tag: --keep and --glossary put it where it belongs")
        chosen = source_tags(self._language(to), others)
        self._source.tag_ids(chosen)  # raises where one is unknown
        return chosen

    def _language(self, to: str | None) -> str | None:
        known = ", ".join(self.languages)
        if to is None:
            if len(self.languages) > 1:
                raise ConfigError(
                    f"this model writes several languages: choose one with --to (in Python, to=). It knows {known}"
                )
            return self.languages[0] if self.languages else None
        if to in self.languages:
            return to
        if self.languages:
            raise ConfigError(f"this model does not write {to!r}; it knows {known}")
        if to == self._only:
            return None
        one = f"this model writes one language, {self._only}" if self._only else "this model has no languages to choose"
        raise ConfigError(f"{one}: leave out --to {to}")
