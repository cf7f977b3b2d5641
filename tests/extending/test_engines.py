"""`Translator` works with an engine from outside the package, which has no model."""

from collections.abc import Iterator, Sequence

import pytest

from dragoman import inspect
from dragoman.base.errors import ConfigError, DataError, LineError
from dragoman.decode.decoding import Sampling
from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Pair, Row
from dragoman.inference.translation.translator import Translator
from dragoman.models.interface import LengthLimit, LengthLimits
from dragoman.text.tokenizers import TextConfig, Tokenizers, train_tokenizers

WORDS = {"a": "ein", "dog": "Hund", "man": "Mann", "sees": "sieht", "runs": "läuft"}
LIMIT = 6


class Dictionary:
    """Writes the translation of each word; returns the last rows first, and cannot sample."""

    limits = LengthLimits(LengthLimit("source", LIMIT, "words"), LengthLimit("target", None, "words"))

    def __init__(self, tokenizers: Tokenizers) -> None:
        self.words = {tokenizers.source.encode(one)[0]: tokenizers.target.encode(two) for one, two in WORDS.items()}
        self.calls: list[list[Row]] = []
        self.silent = False

    def refusal(self, row: Row) -> str | None:
        return "a dictionary has nothing to draw: search" if isinstance(row.decoding, Sampling) else None

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        self.calls.append(list(rows))
        for place, row in reversed(list(enumerate(rows))[self.silent :]):
            found = [word for token in row.source[row.tags :] for word in self.words[token]]
            written = (*row.prefix.ids, *found[len(row.prefix.ids) :])
            best = Hypothesis(written, -1.0 * len(found), -1.0, finished=True, unknown=row.prefix.unknown)
            yield place, [best] * row.decoding.nbest  # type: ignore[union-attr]

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        return [-float(len(pair.source) + len(pair.target)) for pair in pairs]


@pytest.fixture
def translator() -> Translator:
    text = TextConfig.model_validate({"subword": {"kind": "word", "min_frequency": 1}, "shared": False, "tags": ["bt"]})
    tokenizers = train_tokenizers(text, WORDS, WORDS.values())
    return Translator(Dictionary(tokenizers), tokenizers)


def test_translations_come_in_the_order_of_the_texts(translator: Translator) -> None:
    texts = ["a dog runs", "", "a man sees a dog", " "]
    assert translator.translate(texts) == ["ein Hund läuft", "", "ein Mann sieht ein Hund", ""]
    assert list(translator.stream(iter(texts * 9), batch_size=1)) == translator.translate(texts) * 9
    assert [each.tokens for each in translator.score(["a dog", ""], ["ein", ""])] == [2, 1]
    assert [each.log_probability for each in translator.score(["a dog"], ["ein"])] == [-3.0]


def test_each_row_carries_its_own_request(translator: Translator) -> None:
    requests = [
        translator.request(beam=1),
        translator.request(beam=3, nbest=2, tags=["bt"]),
        translator.request(beam=1, prefix="mein  "),
    ]
    found = translator.translate_nbest(["a dog", "a dog runs", "a man"], requests)
    assert [[each.text for each in one] for one in found] == [["ein Hund"], ["ein Hund läuft"] * 2, ["mein Mann"]]
    ((first, second, third),) = translator.engine.calls  # type: ignore[attr-defined]
    assert [row.decoding.beam for row in (first, second, third)] == [1, 3, 1]
    assert [row.tags for row in (first, second, third)] == [0, 1, 0]
    assert second.source[0] == translator.tokenizers.source.tag_ids(["bt"])[0]
    assert [row.number for row in (first, second, third)] == [1, 2, 3]
    # tags of the target vocabulary are forbidden in every row
    assert translator.translate(["a dog"], requests=requests[2]) == ["mein Hund"]
    assert list(translator.stream(["a man", "a dog"], requests=iter(requests[1:]))) == ["ein Mann", "mein Hund"]


def test_a_wrong_number_of_requests_is_refused(translator: Translator) -> None:
    request = translator.request()
    with pytest.raises(DataError, match="2 texts and 1 requests: give each text one$"):
        translator.translate(["a", "a"], requests=[request])
    with pytest.raises(DataError, match="1 requests, but more texts"):
        list(translator.stream(["a", "a"], requests=[request]))
    with pytest.raises(ConfigError, match="leave out beam, prefixes or the requests"):
        translator.translate(["a"], requests=request, beam=2, prefixes=["a"])


def test_refusals_come_before_any_computation(translator: Translator) -> None:
    requests = [translator.request(), translator.request(sampling=Sampling())]
    with pytest.raises(ConfigError, match="a dictionary has nothing to draw"):
        translator.translate(["a dog", "a dog"], requests=requests)
    assert not translator.engine.calls  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="the computation of this engine is not visible"):
        inspect(translator, "a dog")


def test_limits_are_kept_and_lines_before_a_long_one_are_returned(translator: Translator) -> None:
    found = translator.stream(["a dog", "", "a dog runs " * LIMIT, "a"])
    assert [next(found), next(found)] == ["ein Hund", ""]
    with pytest.raises(LineError, match=f"line 3: .* source tokens, but the model has {LIMIT} positions"):
        next(found)
    with pytest.raises(LineError, match="line 2"):
        translator.score(["a", "a dog " * LIMIT], ["ein", "ein"])


def test_a_missing_row_is_detected(translator: Translator) -> None:
    translator.engine.silent = True  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="the engine returned nothing for part 0 of 2"):
        translator.translate(["a", "a dog"])
