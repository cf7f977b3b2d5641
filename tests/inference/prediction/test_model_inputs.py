"""The inputs of models with a head: words and their tokens, division and cutting of long texts, answers."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.labelled.examples import Answer, Question
from dragoman.inference.prediction.heads.answering import AnswerFinder, best_spans
from dragoman.inference.prediction.heads.inputs import encode_words, join_texts, word_inputs
from dragoman.models.heads.spans import SpanHeadConfig
from dragoman.text.symbols import BOS, EOS
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, train_tokenizers

SIZES = {"bpe": 300, "wordpiece": 120, "unigram": 290, "word": 100, "character": None, "subword_nmt": None}
LINES = [
    "A dog runs over the green grass .",
    "Zwei Hunde (aus Köln) schlafen; 12 Katzen auch!",
    "犬が草の上を走る。",
] * 3
WORD = st.one_of(
    st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=6),
    st.sampled_from(["18th", "don't", "U.S.", "😀", "e\u0301", "\u200b", "犬が草の", "grass.", "\u00a0", "(", "@@"]),
)


@cache
def tokenizer(kind: str) -> Tokenizer:
    size = SIZES[kind]
    subword = {"kind": kind} if size is None else {"kind": kind, "size": size}
    return train_tokenizers(TextConfig.model_validate({"subword": subword}), LINES, []).source


@given(words=st.lists(WORD, min_size=1, max_size=8), kind=st.sampled_from(list(SIZES)))
def test_every_word_has_one_place_and_its_own_tokens(words: list[str], kind: str) -> None:
    (encoded,) = encode_words(tokenizer(kind), [words])
    assert len(encoded) == len(words) and all(encoded)
    (whole,) = word_inputs(encoded, None)
    assert len(whole.places) == len(words) and whole.first == 0
    ends = [*whole.places[1:], len(whole.ids) - 1]
    assert [list(whole.ids[start:end]) for start, end in zip(whole.places, ends, strict=True)] == encoded


@pytest.mark.parametrize("kind", SIZES)
def test_words_have_the_tokens_of_the_text(kind: str) -> None:
    text = "A dog runs over the green grass ."
    (encoded,) = encode_words(tokenizer(kind), [text.split()])
    assert [number for ids in encoded for number in ids] == tokenizer(kind).encode(text)


@given(sizes=st.lists(st.integers(1, 9), max_size=40), limit=st.integers(4, 20))
def test_divided_sentences_predict_every_word_once(sizes: list[int], limit: int) -> None:
    words = [[10 * number + piece for piece in range(size)] for number, size in enumerate(sizes, 1)]
    inputs = list(word_inputs(words, limit))
    predicted = [each.first + number for each in inputs for number in range(len(each.places))]
    assert predicted == list(range(len(words)))
    for each in inputs:
        assert len(each.ids) <= limit and each.ids[0] == BOS and each.ids[-1] == EOS
        for number, place in enumerate(each.places, each.first):
            assert each.ids[place] == words[number][0]
    assert inputs[0].cut == sum(max(0, size - (limit - 2)) for size in sizes)


@given(lengths=st.lists(st.integers(0, 30), min_size=1, max_size=2), limit=st.integers(8, 40))
def test_texts_are_cut_at_their_ends_the_longer_one_first(lengths: list[int], limit: int) -> None:
    texts = [[100 * number + place for place in range(length)] for number, length in enumerate(lengths, 1)]
    joined = join_texts(texts, limit)
    assert len(joined.ids) == min(limit, sum(lengths) + 1 + len(lengths))
    assert joined.cut == max(0, sum(lengths) + 1 + len(lengths) - limit)
    assert list(joined.ids).count(EOS) == len(lengths)
    kept, part = [], []
    for number in joined.ids[1:]:
        if number == EOS:
            kept.append(part)
            part = []
        else:
            part.append(number)
    assert all(left == text[: len(left)] for left, text in zip(kept, texts, strict=True))
    if joined.cut and len(lengths) == 2 and min(lengths) > (limit - 3) // 2:
        assert abs(len(kept[0]) - len(kept[1])) <= 1


@given(
    length=st.integers(1, 60),
    question=st.integers(0, 30),
    limit=st.integers(8, 40),
    span=st.tuples(st.integers(0, 59), st.integers(0, 5)),
)
def test_a_divided_context_covers_every_token(length: int, question: int, limit: int, span: tuple[int, int]) -> None:
    characters = tokenizer("character")
    context = "abcdefghijklmnopqrstuvwxyz"[:1] * length
    first = min(span[0], length - 1)
    answer = Answer(context[first : first + 1 + span[1]], first)
    example = Question("1", "q" * question, context, (answer,))
    finder = AnswerFinder(characters, SpanHeadConfig(), limit)
    (inputs,) = finder.encode([example])
    covered = {each.first + number for each in inputs for number in range(len(each.places))}
    assert covered == set(range(len(characters.encode(context))))
    assert all(len(each.ids) <= limit for each in inputs)
    last = first + len(answer.text) - 1
    for each, (start, end) in zip(inputs, finder.target(example, inputs), strict=True):
        if (start, end) != (0, 0):
            assert each.first + each.places.index(start) == first
            assert each.first + each.places.index(end) == last
        else:
            assert first < each.first or last >= each.first + len(each.places)


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=12), st.integers(1, 12))
def test_the_best_span_is_that_of_a_search_through_all_spans(
    logits: Sequence[tuple[float, float]], longest: int
) -> None:
    values = np.array(logits, np.float32)
    score, first, last = best_spans(values, longest)[0]
    spans = [(i, j) for i in range(len(values)) for j in range(i, min(len(values), i + longest))]
    best = max(float(values[i, 0]) + float(values[j, 1]) for i, j in spans)
    assert (first, last) in spans
    assert score == pytest.approx(best) == pytest.approx(float(values[first, 0]) + float(values[last, 1]))


def test_the_tokens_that_a_long_question_loses_are_counted_once() -> None:
    finder = AnswerFinder(tokenizer("word"), SpanHeadConfig(), 16)
    (inputs,) = finder.encode([Question("1", " ".join(["dog"] * 20), "A dog runs " * 20)])
    assert len(inputs) > 2 and [each.cut for each in inputs] == [20 - (16 // 2 - 2), *[0] * (len(inputs) - 1)]
