"""`Codec`: converts texts and requests to an engine's rows, and its hypotheses to translations."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

from dragoman.base.cancellation import check_cancelled, until_cancelled
from dragoman.base.errors import ConfigError, LineError, TooLongError
from dragoman.decode.constraints.constraint import Constraint
from dragoman.decode.decoding import Decoding, Sampling
from dragoman.decode.output import OutputConfig
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import ExpectedConstraints, Pair, Prefix, Row
from dragoman.engines.unknown_words import unknown_words
from dragoman.inference.control.constraints import ConstrainedSource, ConstraintCodec
from dragoman.inference.control.control import Control
from dragoman.inference.control.phrase import Phrase
from dragoman.inference.translation.request import Request, TextRequest, check_pairs
from dragoman.inference.translation.result import Translation
from dragoman.models.interface import LengthLimits, first_exceeded
from dragoman.statistical.alignment.shortlist import Shortlist
from dragoman.text.normalization import INVISIBLE, LETTER_FORMS, ODD_SPACES, STRAY_JOINERS
from dragoman.text.symbols import InlineText
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.unknown_tokens import UnknownTokenWarning
from dragoman.text.vocabularies.feature_vectors import VectorError
from dragoman.text.words import word_indices

_BLANKS = re.compile(r"[ \t]{2,}|\t")


class Codec:
    """Encodes and decodes with a model's vocabularies, within its length limits."""

    def __init__(
        self,
        tokenizers: Tokenizers,
        limits: LengthLimits,
        warn_unknown: bool = True,
        shortlist: Shortlist | None = None,
    ) -> None:
        """warn_unknown: whether to warn if a large fraction of the tokens of the texts is unknown. shortlist: of the
        model, for requests with `search.shortlist`.
        """
        self._source, self._target = tokenizers.source, tokenizers.target
        self._tokenizers, self._limits, self.shortlist = tokenizers, limits, shortlist
        self.constraints = ConstraintCodec(tokenizers)
        self._warnings = [UnknownTokenWarning(each, warn_unknown) for each in (self._source, self._target)]

    def encode_rows(self, lines: Sequence[TextRequest], numbers: Sequence[int]) -> list[Row]:
        """Return one row per text. The row of a blank text has an empty source. numbers: the line number of each text.

        Raises VectorError for an invalid vector, ConfigError for an unknown tag, LineError if the required phrases
        exceed the model's maximum length, or if a blank text has required phrases.
        """
        requests = {id(request): request for _, request in lines}  # often the same for all lines
        decodings = {key: self._without_tags(request.decoding) for key, request in requests.items()}
        tags = {key: self._source.tag_ids(request.tags) for key, request in requests.items()}
        prefixes = self._prefixes(
            [request.prefix.rstrip() for _, request in lines], [request.decoding for _, request in lines]
        )
        constrained = {
            index: self._constrained(numbers[index], text, prefixes[index], request.control)
            for index, (text, request) in until_cancelled(enumerate(lines))
            if request.control is not None and self._can_be_constrained(numbers[index], text, request.control)
        }
        read = [
            self._with_usual_forms(constrained[index].line if index in constrained else InlineText((text,)))
            for index, (text, _) in enumerate(lines)
        ]
        nonblank = [index for index, (text, _) in enumerate(lines) if text.strip()]
        try:
            encoded = self._source.encode_inlined([read[index] for index in nonblank])
        except VectorError as error:
            raise VectorError(numbers[nonblank[error.index]] - 1, error.reason) from None
        self._warnings[0].note(encoded)
        ids = dict(zip(nonblank, encoded, strict=True))
        rows = [
            Row(
                number=numbers[index],
                text=text if read[index].symbols else read[index].parts[0],
                source=_tagged(tags[id(request)], ids[index]) if index in ids else (),
                decoding=decodings[id(request)],
                prefix=prefixes[index],
                tags=len(request.tags),
            )
            for index, (text, request) in enumerate(lines)
        ]
        for index, source in constrained.items():
            rows[index] = _with_constraints(rows[index], source)
        return self._with_shortlists(rows)

    def _with_shortlists(self, rows: list[Row]) -> list[Row]:
        """Return the rows with the shortlists that their decodings request. Raises ConfigError without a shortlist.

        A shortlist contains the tokens of the source text in the target vocabulary, so that words can be copied.
        """
        indices = [
            index
            for index, row in enumerate(rows)
            if isinstance(row.decoding, SearchConfig) and row.decoding.shortlist and row.text.strip()
        ]
        if not indices:
            return rows
        if self.shortlist is None:
            raise ConfigError(
                "search.shortlist=true needs the shortlist of the model, which `dragoman shortlist MODEL --source FILE "
                "--target FILE` creates from the training text: create it, or leave out search.shortlist"
            )
        copies = self._target.encode_batch([rows[index].text for index in indices])
        result = list(rows)
        for index, copied in zip(indices, copies, strict=True):
            row = rows[index]
            required = (*row.constraints, *row.expected.constraints)
            phrases = [alternative.ids for constraint in required for alternative in constraint]
            others = chain(copied, row.prefix.ids, *phrases)
            result[index] = row._replace(shortlist=self.shortlist.tokens(row.source, others))
        return result

    def enforce_constraints(self, row: Row) -> Row:
        """Return a copy of the row whose expected constraints are enforced by the search."""
        constraints, forbidden = row.expected
        return row._replace(
            constraints=constraints, decoding=_forbid(row.decoding, forbidden), expected=ExpectedConstraints(())
        )

    def encode_part(self, row: Row, text: str, phrases: tuple[Phrase, ...]) -> Row:
        """Return a row for `text`, a part of a row's text, without the row's prefix.

        phrases: required in its translation.
        """
        constraints = self._constrained(row.number, text, Prefix(), Control(phrases)).constraints
        source = [*row.source[: row.tags], *self._source.encode(text)]
        (prefix,) = self._prefixes([""], [row.decoding])
        part = row._replace(text=text, source=source, prefix=prefix, constraints=constraints)
        return self._with_shortlists([part])[0]

    def encode_pairs(self, sources: Sequence[str], targets: Sequence[str], tags: Sequence[str]) -> list[Pair]:
        """Return one pair per source and target.

        Raises DataError if the numbers of sources and targets differ, TooLongError for a pair that exceeds the model's
        maximum length.
        """
        check_pairs(sources, targets)
        tag_ids = self._source.tag_ids(tags)
        lines = [self._with_usual_forms(InlineText((source,))) for source in sources]
        source_ids = [_tagged(tag_ids, ids) for ids in self._source.encode_inlined(lines)]
        target_ids = self._target.encode_batch(targets)
        self._warnings[0].note(source_ids)
        self._warnings[1].note(target_ids)
        both = zip(source_ids, target_ids, strict=True)
        pairs = [Pair(number, source, target) for number, (source, target) in enumerate(both, start=1)]
        for pair in pairs:
            self.check_length(pair.number, pair.source, pair.target)
        return pairs

    def piece_words(self, source: str, target: str) -> tuple[list[int | None], list[int | None]]:
        """Return the index of the word of each id of a pair in `source.split()` and `target.split()`, without tags.

        None: whitespace. Words of characters that `encode_pairs` leaves out have no ids.
        """
        usual, *words = (self._with_usual_forms(InlineText((each,))).parts[0] for each in (source, *source.split()))
        kept = [index for index, word in enumerate(words) if word]
        indices = word_indices(self._source, usual)
        return [None if word is None else kept[word] for word in indices], word_indices(self._target, target)

    def target_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of translations."""
        return self._target.encode_batch(texts)

    def pairs_of(self, row: Row, targets: Sequence[Sequence[int]]) -> list[Pair]:
        """Return pairs of the text of a row, without placeholders, and each target."""
        source = [*row.source[: row.tags], *self._source.encode(row.text)]
        return [Pair(row.number, source, target) for target in targets]

    def check_length(self, number: int, source: Sequence[int], target: Sequence[int]) -> None:
        """Raise TooLongError if the tokens exceed the model's maximum length. number: of the line, from 1."""
        if (exceeded := first_exceeded(self._limits, len(source), len(target))) is not None:
            limit, length = exceeded
            reason = f"{limit.describe(length)}: shorten it, or train a model with a larger {limit.setting}"
            raise TooLongError(number - 1, reason, limit.side)

    def usual(self, text: str) -> str:
        """Return a text with the spaces that the model reads."""
        return self._with_usual_forms(InlineText((text,))).parts[0]

    def fits(self, text: str, request: Request) -> bool:
        """Return whether the text, with its tags and placeholders, is within the model's maximum length."""
        check_cancelled()
        if self._limits.source.positions is None:
            return True
        if request.control is not None:  # required phrases are not part of the source
            request = replace(request, control=replace(request.control, phrases=()))
        (row,) = self.encode_rows([(text, request)], [1])
        return self.has_positions_for(row.source, ())

    def has_positions_for(self, source: Sequence[int], target: Sequence[int]) -> bool:
        """Return whether the tokens are within the model's maximum lengths."""
        return first_exceeded(self._limits, len(source), len(target)) is None

    def decode(self, hypothesis: Hypothesis, constraints: tuple[Constraint, ...] = ()) -> Translation:
        """Return a hypothesis as a translation, with unknown words replaced. constraints: those of its row."""
        return Translation(
            self.constraints.decode(hypothesis, constraints)
            if constraints
            else self._target.decode(hypothesis.tokens, hypothesis.unknown),
            hypothesis.score,
            hypothesis.log_probability,
            hypothesis.tokens,
            self._target,
            hypothesis.finished,
            hypothesis.token_log_probabilities,
            hypothesis.tree,
            hypothesis.bound,
        )

    def count_target_tokens(self, text: str) -> int:
        """Return the number of tokens of a text in the target vocabulary."""
        return len(self._target.encode(text))

    def blank_translation(self, row: Row) -> Translation:
        """Return the translation of a blank text, which is its prefix."""
        return self.decode(Hypothesis(row.prefix.ids, 0.0, 0.0, True, row.prefix.unknown))

    def _can_be_constrained(self, number: int, text: str, control: Control) -> bool:
        """Return whether a text can have requirements: a blank one has none. Raises LineError for required phrases."""
        if text.strip():
            return True
        if control.phrases:
            raise LineError(number - 1, "a blank line cannot have required phrases: remove the phrases")
        return False

    def _constrained(self, number: int, text: str, prefix: Prefix, control: Control) -> ConstrainedSource:
        """Return a text with its requirements as constraints. number: of the line, from 1, for messages."""
        if self._tokenizers.reads_vectors and (control.keep is not None or control.glossary is not None):
            raise ConfigError(
                "the sources of this model are vectors, which have no words to keep or to look up in a glossary: "
                "remove --keep and --glossary"
            )
        positions = self._limits.target.positions
        max_tokens = None if positions is None else positions - len(prefix.ids)
        try:
            return self.constraints.encode(control.requirements(text), max_tokens)
        except ConfigError as error:
            raise LineError(number - 1, str(error)) from None

    def _with_usual_forms(self, line: InlineText) -> InlineText:
        """Return a source with single spaces, and without the invisible characters, odd spaces and odd forms of letters
        that the model has never read, because a single one often spoils the whole translation. Protected spans are not
        changed.
        """
        if self._tokenizers.reads_vectors:
            return line
        parts = [part if part.isascii() else STRAY_JOINERS.sub("", part.translate(self._unread)) for part in line.parts]
        parts = [_BLANKS.sub(" ", part) for part in parts]
        parts[0] = parts[0].lstrip(" ")
        parts[-1] = parts[-1].rstrip(" ")
        return InlineText(tuple(parts), line.symbols)

    @cached_property
    def _unread(self) -> dict[int, str]:
        """A translation table for odd spaces, invisible characters and odd forms that the source vocabulary lacks."""
        surfaces = map(self._source.surface, range(self._source.size))
        known = set(b"\n".join(surfaces).decode(errors="ignore"))
        table = {**dict.fromkeys(map(ord, ODD_SPACES), " "), **dict.fromkeys(map(ord, INVISIBLE), ""), **LETTER_FORMS}
        return {code: usual for code, usual in table.items() if chr(code) not in known}

    def _without_tags(self, decoding: Decoding) -> Decoding:
        """Return the decoding with all tags forbidden in the translation, except those that the model has to start."""
        free = () if output_config(decoding).force_start else self._target.start
        tag_ids = tuple(self._target.tag_ids([tag for tag in self._target.tags if tag not in free]))
        if isinstance(decoding, Sampling):
            config = decoding.config.model_copy(update={"forbid": (*decoding.config.forbid, *tag_ids)})
            return replace(decoding, config=config)
        return decoding.model_copy(update={"forbid": (*decoding.forbid, *tag_ids)})

    def _prefixes(self, texts: list[str], decodings: Sequence[Decoding]) -> list[Prefix]:
        """Return the prefix of each translation; without a text, the tags with which every translation starts."""
        if not any(texts) and not self._target.start:
            return [Prefix()] * len(texts)
        ids = self._target.encode_batch(texts)
        return [
            Prefix(tuple(prefix), unknown_words(self._tokenizers, text, prefix))
            if text or output_config(decoding).force_start
            else Prefix()
            for text, prefix, decoding in zip(texts, ids, decodings, strict=True)
        ]


def output_config(decoding: Decoding) -> OutputConfig:
    """Return the output settings of a search or of sampling."""
    return decoding.config if isinstance(decoding, Sampling) else decoding


def _tagged(tags: list[int], ids: list[int]) -> list[int]:
    return [*tags, *ids] if tags else ids


def _with_constraints(row: Row, source: ConstrainedSource) -> Row:
    """Return a row whose constraints the search enforces, or, if the model has learned to meet them, expects."""
    if source.free is None:
        decoding = _forbid(row.decoding, source.forbidden)
        return row._replace(decoding=decoding, constraints=source.constraints)
    expected = ExpectedConstraints(source.constraints, (*source.forbidden, *source.free))
    return row._replace(decoding=_allow(row.decoding, source.free), expected=expected)


def _allow(decoding: Decoding, tokens: tuple[int, ...]) -> Decoding:
    """Return the decoding with these tokens allowed."""
    if not tokens or isinstance(decoding, Sampling):
        return decoding
    forbidden = tuple(token for token in decoding.forbid if token not in tokens)
    return decoding.model_copy(update={"forbid": forbidden})


def _forbid(decoding: Decoding, tokens: tuple[int, ...]) -> Decoding:
    """Return the decoding with these tokens forbidden."""
    if not tokens or isinstance(decoding, Sampling):
        return decoding
    return decoding.model_copy(update={"forbid": (*decoding.forbid, *tokens)})
