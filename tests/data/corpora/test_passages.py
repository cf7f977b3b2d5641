"""A document in passages has the same text and, if it contains blanks, the same ids as in one piece."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.data.corpora.documents import divide_into_passages
from dragoman.data.corpora.items import Passage
from dragoman.text.symbols import UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig

KINDS = {"bpe": 300, "wordpiece": 120, "unigram": 290, "word": 100, "character": None, "subword_nmt": None}
LINES = ["A dog runs (over it) .\n\nTwo dogs;  12 cats \n", " = Title = \n a##b\tc\n犬が草の上を。 e\u0301 😀"] * 3
TEXT = st.one_of(
    st.text(max_size=60),
    st.text(alphabet=" \n\tab1.\r\x1c\u2028😀\u0301#", max_size=60),
    st.lists(st.sampled_from([*LINES, "dog", " ", "\n", "  ", "runs over"]), max_size=6).map("".join),
)


def divided(text: str, longest: int, parts: list[str] | None = None) -> list[Passage]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.data.corpora.documents.LONGEST", longest)
        return list(divide_into_passages(1, [text] if parts is None else parts))


@settings(max_examples=100)
@given(text=TEXT, longest=st.integers(1, 30), data=st.data())
def test_the_passages_are_the_document(text: str, longest: int, data: st.DataObject) -> None:
    found = divided(text, longest)
    assert "".join(each.text for each in found) == text
    assert all(0 < len(each.text) <= longest for each in found[:-1])
    assert len(found[-1].text) <= longest
    assert [each.begins for each in found] == [True] + [False] * (len(found) - 1)
    assert [each.ends for each in found] == [False] * (len(found) - 1) + [True]
    before = [text[: sum(len(each.text) for each in found[:place])] for place in range(len(found))]
    assert [each.line for each in found] == [1 + start.count("\n") for start in before]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    parts = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert divided(text, longest, parts) == found


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizer]:
    return {
        kind: TextConfig.model_validate({"subword": {"kind": kind, **({"size": size} if size else {})}}).subword.learn(
            LINES
        )
        for kind, size in KINDS.items()
    }


@settings(max_examples=100)
@given(text=TEXT, longest=st.integers(8, 40), kind=st.sampled_from(list(KINDS)))
@example(text="dog dog dog dog\n\n\n dog dog", longest=8, kind="bpe")
@example(text="dog dog dog dog\n\n\n dog dog", longest=8, kind="word")
def test_ids_of_passages_are_those_of_the_document(
    learned: dict[str, Tokenizer], text: str, longest: int, kind: str
) -> None:
    tokenizer = learned[kind]
    first, *others = divided(text, longest)
    ids = tokenizer.encode(first.text) + [
        number for each in tokenizer.encode_continuation([other.text for other in others]) for number in each
    ]
    between_words = all(other.text[:1] == " " and other.text[1:2].strip() for other in others)
    if between_words or (kind == "character"):
        assert ids == tokenizer.encode(text)
    elif kind != "subword_nmt" and UNK not in ids:
        assert tokenizer.decode(ids) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram", "word", "wordpiece", "character"])
def test_newlines_are_kept(learned: dict[str, Tokenizer], kind: str) -> None:
    tokenizer = learned[kind]
    for text in (LINES[0], LINES[1], "dogs\n\nTwo"):
        ids = tokenizer.encode(text)
        assert UNK not in ids
        assert tokenizer.decode(ids) == text
