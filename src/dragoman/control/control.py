"""`Control`: what is asked of the words of translations, and `Requirements`, what that means for one text."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.control.glossary import Glossary, Match, glossary_of
from dragoman.control.keep import KeepRules, Span
from dragoman.control.phrase import Phrase, phrases


@dataclass(frozen=True)
class Requirements:
    """Of one text. phrases: that its translation must hold in any case; terms: of a glossary; spans: that are kept."""

    text: str
    phrases: tuple[Phrase, ...]
    terms: tuple[Match, ...]
    spans: tuple[Span, ...]
    keep: KeepRules | None

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.required or self.spans)

    @property
    def required(self) -> tuple[Phrase, ...]:
        """The phrases, and those that the glossary's terms ask for, in the order of the text."""
        return (*self.phrases, *(term.phrase for term in self.terms))

    def met_by(self, translation: str) -> bool:
        """Whether it holds each phrase as often as that is asked for, as words of their own, and each span as the text.

        A span may occur more often where phrases hold it too.
        """
        if any(phrase.times(translation) < times for phrase, times in Counter(self.required).items()):
            return False
        if self.keep is None or not self.spans:
            return True
        found, more = Counter(self._found(translation)), Counter[str]()
        for phrase in self.required:
            most = Counter[str]()
            for form in phrase.alternatives:
                most |= Counter(self._found(form))
            more += most
        wanted = Counter(span.text for span in self.spans)
        return all(times <= found[span] <= times + more[span] for span, times in wanted.items())

    def _found(self, text: str) -> list[str]:
        assert self.keep is not None
        return [span.text for span in self.keep.find(text)]


@dataclass(frozen=True)
class Control:
    """phrases: that every translation must hold; glossary: of terms; keep: what stays as it is."""

    phrases: tuple[Phrase, ...] = ()
    glossary: Glossary | None = None
    keep: KeepRules | None = None

    @staticmethod
    def of(
        constraints: Iterable[str | Sequence[str]] = (),
        glossary: Glossary | Mapping[str, Any] | Path | str | None = None,
        keep: Iterable[str] = (),
        keep_patterns: Iterable[str] = (),
    ) -> "Control | None":
        """None where nothing is asked for.

        constraints: phrases, each a text or several of which one will do; glossary: its terms or its file, too; keep:
        names of `keep.KINDS`, or all. Raises ConfigError for what makes no sense, DataError for an unreadable glossary.
        """
        asked = Control(phrases(constraints), glossary_of(glossary), KeepRules.of(keep, keep_patterns))
        return asked if asked.phrases or asked.glossary is not None or asked.keep is not None else None

    def requirements(self, text: str) -> Requirements:
        """Of one text. Terms are looked for beside what is kept, not within."""
        spans = () if self.keep is None else tuple(self.keep.find(text))
        terms: list[Match] = []
        if self.glossary is not None:
            ends = [0, *(span.end for span in spans)]
            starts = [*(span.start for span in spans), len(text)]
            for start, end in zip(ends, starts, strict=True):
                terms += self.glossary.find(text, start, end)
        return Requirements(text, self.phrases, tuple(terms), spans, self.keep)

    def settings(self) -> dict[str, Any]:
        """As values that JSON keeps."""
        return {
            "phrases": [list(phrase.alternatives) for phrase in self.phrases],
            "glossary": None if self.glossary is None else self.glossary.fingerprint,
            "keep": None if self.keep is None else [list(self.keep.kinds), list(self.keep.patterns)],
        }
