"""`Guarding`: translations that a guard finds wrong are searched again in other ways."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.base.errors import ConfigError, DataError, ResourceError
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.translation.codec import Codec
from dragoman.translation.engine import Engine, Row
from dragoman.translation.guarantee import Guarantee
from dragoman.translation.guard.finding import Finding, Guarded
from dragoman.translation.other_searches import OtherSearch, other_searches
from dragoman.translation.request import Request, TextRequest
from dragoman.translation.result import Translation


@dataclass
class _Wrong:
    """A text whose best translation is wrong. place: in the window; translations: the best that were found so far."""

    place: int
    number: int
    text: str
    request: Request
    found: tuple[Finding, ...]
    translations: list[Translation]
    searches: list[OtherSearch]

    @property
    def left(self) -> int:
        """How much is wrong with the best that was found so far."""
        guarded = self.translations[0].guarded
        return 0 if guarded is None else len(guarded.left)


class Guarding:
    """Of several hypotheses those are given that nothing is wrong with; where there are none, a text is searched again.

    The first search that gives some decides; else the hypothesis with the fewest findings is given, of equal ones the
    first search's, then the one with the better score. What a search does for a text depends on that text alone.
    """

    def __init__(self, engine: Engine, codec: Codec, guarantee: Guarantee) -> None:
        """guarantee: tells which hypotheses hold what they must hold; others are never taken."""
        self._engine, self._codec, self._guarantee = engine, codec, guarantee

    def guarded(
        self, found: Iterator[tuple[int, list[Translation]]], lines: Sequence[TextRequest], batch_size: int, first: int
    ) -> Iterator[tuple[int, list[Translation]]]:
        """The translations of each place, those that had to be searched again after all others.

        found: what the requests' own searches gave; first: the number of the first line.
        """
        wrong = []
        for place, translations in found:
            text, request = lines[place]
            if request.guard is None:
                yield place, translations
                continue
            one = self._looked_at(place, first + place, text, request, translations)
            if one is None:
                yield place, translations
            elif one.left and one.searches:
                wrong.append(one)
            else:
                yield place, one.translations
        while wrong:
            self._search(wrong, batch_size)
            yield from ((one.place, one.translations) for one in wrong if not (one.left and one.searches))
            wrong = [one for one in wrong if one.left and one.searches]

    def _looked_at(
        self, place: int, number: int, text: str, request: Request, translations: list[Translation]
    ) -> _Wrong | None:
        """None where nothing is wrong with any."""
        assert request.guard is not None
        findings = [request.guard.findings(text, each.text) for each in translations]
        if not any(findings):
            return None
        searches: list[OtherSearch] = []
        # what had to be put together from parts was searched for in vain already
        if all(findings) and not translations[0].patched:
            searches = list(other_searches(request, findings[0], self._codec.count_target_tokens))
        ordered = _ordered(translations, findings, findings[0], "")
        return _Wrong(place, number, text, request, findings[0], ordered, searches)

    def _search(self, wrong: Sequence[_Wrong], batch_size: int) -> None:
        """Search each text in the first way that is left for it."""
        asked = [(one, one.searches.pop(0)) for one in wrong]
        rows = [(one, other, row) for one, other in asked if (row := self._row(one, other)) is not None]
        if not rows:
            return
        try:
            for place, hypotheses in self._engine.hypotheses([row for *_, row in rows], batch_size):
                one, other, row = rows[place]
                self._take(one, other, row, hypotheses)
        except ResourceError:
            return  # a wider search may need more memory than there is: what was found before stays

    def _row(self, one: _Wrong, other: OtherSearch) -> Row | None:
        """None where the text cannot be searched so."""
        try:
            (row,) = self._codec.rows([(one.text, other.request)], one.number)
            self._codec.check_length(row.number, row.source, row.prefix.ids)
        except (ConfigError, DataError):
            return None
        return None if self._engine.refusal(row) is not None else row

    def _take(self, one: _Wrong, other: OtherSearch, row: Row, hypotheses: list[Hypothesis]) -> None:
        """Keep the hypotheses if the best of them is better than what is known."""
        control, guard = other.request.control, one.request.guard
        assert guard is not None
        if control is None:
            given = [self._codec.translation(each) for each in hypotheses]
        else:
            given = self._guarantee.holding(row, one.text, control, hypotheses)
        finished = one.translations[0].finished
        given = [each for each in given if each.finished or not finished]
        if not given:
            return
        ordered = _ordered(given, [guard.findings(one.text, each.text) for each in given], one.found, other.name)
        guarded = ordered[0].guarded
        assert guarded is not None
        if len(guarded.left) < one.left:
            config = one.request.decoding
            assert isinstance(config, SearchConfig)
            one.translations = ordered[: config.nbest]


def _ordered(
    translations: Sequence[Translation],
    findings: Sequence[tuple[Finding, ...]],
    found: tuple[Finding, ...],
    search: str,
) -> list[Translation]:
    """Those that nothing is wrong with; where there are none all, the fewest findings first.

    found: in the text's best translation; where nothing was, they are as they were.
    """
    told = [
        replace(each, guarded=Guarded(found, left, search)) if found or left else each
        for each, left in zip(translations, findings, strict=True)
    ]
    if not all(findings):
        return [each for each, left in zip(told, findings, strict=True) if not left]
    return [told[place] for place in sorted(range(len(told)), key=lambda place: len(findings[place]))]
