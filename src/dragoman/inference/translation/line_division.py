"""`LineDivision`: divides lines of several sentences, so that they are translated sentence by sentence.

Models that are trained on sentences translate only a part of a line with several: a model of Multi30k translates pairs
of captions with a BLEU of 14.8 as lines, and of 31.9 as sentences.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from dragoman.decode.search import SearchConfig
from dragoman.inference.translation.capitals import Capitals
from dragoman.inference.translation.guard.guard import merge_outcomes
from dragoman.inference.translation.request import Request, TextRequest
from dragoman.inference.translation.result import LinePart, Translation
from dragoman.text.sentences.division import MAX_LENGTH, count_letters, divide
from dragoman.text.sentences.splitter import Splitter, may_be_divided
from dragoman.text.symbols import EOS

Span = tuple[int, int]
"""The first character of a sentence, and the character after its last."""


class DividedLine(NamedTuple):
    """A line that is translated sentence by sentence or, without spans, as a whole.

    spans: the sentences in order. What lies between them, such as spaces and the numbers of a list, is copied. forced:
    whether a line of several sentences is translated as a whole because its request concerns the whole line. capitals:
    translates texts in capital letters and in title case; None to translate them as they are.
    """

    text: str
    request: Request
    spans: Sequence[Span] = ()
    forced: bool = False
    capitals: Capitals | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the translation of the line is that of its text as it is."""
        return not self.spans and not (self.capitals is not None and self.capitals.includes(self.text))

    def texts(self) -> list[TextRequest]:
        """Return the texts to translate, with their requests."""
        texts = self._written()
        if (capitals := self.capitals) is not None:
            texts = [capitals.usual(text) if capitals.includes(text) else text for text in texts]
        return [(text, self.request) for text in texts]

    def _written(self) -> list[str]:
        """Return the texts to translate, as they are written."""
        return [self.text[begin:end] for begin, end in self.spans] or [self.text]

    def join(self, results: Sequence[Sequence[Translation]]) -> list[Translation]:
        """Return the translations of the line from the translations of each of its texts.

        The n-th translation of a divided line consists of the n-th translation of each sentence. If a sentence has
        fewer translations, its last one is repeated. The ids include the end of each sentence except the last; scores
        and log-probabilities are sums.
        """
        if (capitals := self.capitals) is not None:
            results = [
                [replace(each, text=capitals.capitalise(each.text, text)) for each in result]
                if capitals.is_upper(text)
                else result
                for text, result in zip(self._written(), results, strict=True)
            ]
        if not self.spans:
            return [replace(each, forced_whole=True) for each in results[0]] if self.forced else list(results[0])
        ranks = range(max(map(len, results)))
        return [self._join([each[min(rank, len(each) - 1)] for each in results]) for rank in ranks]

    def _join(self, translations: Sequence[Translation]) -> Translation:
        parts: list[LinePart] = []
        end = 0
        for span, translation in zip(self.spans, translations, strict=True):
            parts += [self._copied(end, span[0]), LinePart(self.text[slice(*span)], translation.text.strip())]
            end = span[1]
        parts.append(self._copied(end, len(self.text)))
        bounds = [each.bound for each in translations if each.bound is not None]
        ids = tuple(token for each in translations for token in (*each.ids, *([EOS] if each.finished else [])))
        return replace(
            translations[0],
            text="".join(part.translation for part in parts),
            score=sum(each.score for each in translations),
            log_probability=sum(each.log_probability for each in translations),
            ids=ids[:-1] if translations[-1].finished else ids,
            finished=all(each.finished for each in translations),
            token_log_probabilities=tuple(value for each in translations for value in each.token_log_probabilities),
            tree=None,
            bound=sum(bounds) if len(bounds) == len(translations) else None,
            patched=any(each.patched for each in translations),
            guarded=merge_outcomes(each.guarded for each in translations),
            parts=tuple(part for part in parts if part.source),
        )

    def _copied(self, begin: int, end: int) -> LinePart:
        return LinePart(self.text[begin:end], self.text[begin:end], is_copied=True)


class LineDivision:
    """Divides lines into sentences by the rules for documents.

    A line stays whole if its request has a prefix, required phrases or a search tree, because these belong to the whole
    line, and if one of its sentences is too long for the model. A sentence of an unusual length is divided further, at
    the ends of clauses if possible.
    """

    def __init__(
        self,
        language: str | None,
        fits: Callable[[str, Request], bool],
        has_usual_length: Callable[[str, Request], bool] = lambda text, request: True,
        capitals: Capitals | None = None,
    ) -> None:
        """language: the source language; None for English. fits: returns whether a text fits the model's positions.

        has_usual_length: returns whether a text is no longer than the texts that the model was trained on. capitals: of
        the model; None to translate texts in capital letters and in title case as they are.
        """
        self._language, self._fits, self._has_usual_length = language or "en", fits, has_usual_length
        self._capitals = capitals
        self._splitter = Splitter(self._language)

    def divide(self, text: str, request: Request) -> DividedLine:
        """Return a line with the sentences to translate."""
        capitals = None if _concerns_whole_line(request) else self._capitals
        if capitals is None or not capitals.includes(text):
            return self._divide(text, request)._replace(capitals=capitals)
        usual = capitals.usual(text)  # capital letters would count as many more tokens
        line = self._divide(usual if len(usual) == len(text) else text, request)
        return line._replace(text=text, capitals=capitals)

    def _divide(self, text: str, request: Request) -> DividedLine:
        if not request.divide:
            return DividedLine(text, request)
        is_long = count_letters(text) > MAX_LENGTH
        has_usual_length = self._has_usual_length(text, request)
        if has_usual_length and not (is_long or may_be_divided(text)):
            return DividedLine(text, request)
        splitter = self._splitter
        if not has_usual_length:
            splitter = Splitter(self._language, lambda part: self._has_usual_length(part, request))
        spans = _without_divided_spans(splitter.sentences(text), text, request)
        if not spans and is_long:
            spans = _divide_evenly(text, lambda part: count_letters(part) <= MAX_LENGTH)
        if len(spans) < 2:
            return DividedLine(text, request)
        if _concerns_whole_line(request):
            return DividedLine(text, request, forced=is_long or may_be_divided(text))
        if not all(self._fits(text[begin:end], request) for begin, end in spans):
            return DividedLine(text, request)
        return DividedLine(text, request, spans)

    def divide_to_fit(self, text: str, request: Request) -> DividedLine:
        """Return a line with parts that fit the model's positions: sentences, or, if too long, parts of sentences."""

        def fits(part: str) -> bool:
            return self._fits(part, request) and self._has_usual_length(part, request)

        spans = list(Splitter(self._language, fits).sentences(text)) if request.divide else []
        return DividedLine(text, request, spans or _divide_evenly(text, fits))


def _divide_evenly(text: str, fits: Callable[[str], bool]) -> list[Span]:
    """Return parts of a text that fit, regardless of its sentences."""
    spans, begin = [], 0
    for part in divide(text, fits):
        stripped = part.strip()
        start = begin + part.index(stripped)
        spans.append((start, start + len(stripped)))
        begin += len(part)
    return spans


def _concerns_whole_line(request: Request) -> bool:
    has_tree = isinstance(request.decoding, SearchConfig) and request.decoding.tree
    has_phrases = request.control is not None and bool(request.control.phrases)
    return bool(request.prefix.strip()) or has_phrases or has_tree


def _without_divided_spans(sentences: Iterable[Span], text: str, request: Request) -> list[Span]:
    """Return the sentences after joining those that divide a span to copy or a term of the glossary."""
    if request.control is None:
        return list(sentences)
    requirements = request.control.requirements(text)
    spans = [(begin, end, True) for begin, end in sentences]
    spans += [(span.start, span.end, False) for span in requirements.spans]
    spans += [(term.start, term.end, False) for term in requirements.terms]
    joined: list[tuple[int, int, bool]] = []
    for begin, end, is_sentence in sorted(spans):
        if joined and begin < joined[-1][1]:
            first, last, had_sentence = joined.pop()
            joined.append((first, max(last, end), had_sentence or is_sentence))
        else:
            joined.append((begin, end, is_sentence))
    return [(begin, end) for begin, end, has_sentence in joined if has_sentence]
