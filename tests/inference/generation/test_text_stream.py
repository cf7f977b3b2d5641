"""`TextStream`: for any tokens its pieces are whole characters that join to the text decoded at once."""

from collections.abc import Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tiny_language_model import BYTE_LEVEL, tiny_tokenizers

from dragoman.inference.generation.writer import TextStream
from dragoman.text.symbols import SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.subword_nmt import Codes, SubwordNMTTokenizer

KINDS: dict[str, Tokenizer] = {
    "bpe": tiny_tokenizers(BYTE_LEVEL).target,
    "character": tiny_tokenizers({"kind": "character", "min_frequency": 1}).target,
    "word": tiny_tokenizers({"kind": "word", "min_frequency": 1}).target,
    "subword_nmt": SubwordNMTTokenizer(Codes((0, 2), (("a", "b"), ("ab", "c</w>"))), "abc"),
}
PROMPTS = ["", "a dog", "abc ab"]


def pieces(stream: TextStream, ids: Sequence[int]) -> list[str]:
    found = []
    for token in ids:
        found.append(stream.push(token))
        if stream.stopped:
            break
    return [*found, stream.finish()]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_any_tokens(kind: str, data: st.DataObject) -> None:
    """Including random bytes that are not valid text."""
    tokenizer = KINDS[kind]
    prompt = tokenizer.encode(data.draw(st.sampled_from(PROMPTS)))
    assume(UNK not in prompt)  # unknown to the decoder
    ids = data.draw(st.lists(st.integers(len(SPECIAL_SYMBOLS), tokenizer.size - 1), max_size=20))
    before = tokenizer.decode(prompt)
    assert before + "".join(pieces(TextStream(tokenizer, prompt), ids)) == tokenizer.decode([*prompt, *ids])


@given(st.text(max_size=12), st.lists(st.text("ab 狗🐕", min_size=1, max_size=3), max_size=3))
def test_any_text_up_to_a_stop_string(text: str, stop: list[str]) -> None:
    tokenizer = KINDS["bpe"]
    ids = tokenizer.encode(text)
    stream = TextStream(tokenizer, [], stop)
    found = pieces(stream, ids)
    ends = [(text.index(each) + len(each), text.index(each)) for each in stop if each in text]
    assert "".join(found) == (text[: min(ends)[1]] if ends else text)
    assert stream.stopped == bool(ends)
    assert not any("\ufffd" in piece for piece in found if "\ufffd" not in text)


@pytest.mark.parametrize(("stop", "left"), [(["og", "d"], "a "), (["dogs", "og"], "a d"), (["g", "og"], "a d")])
def test_several_stop_strings_in_one_token(stop: list[str], left: str) -> None:
    """The first complete stop string counts, in any order of the list; of two that end together, the longer one."""
    tokenizer = KINDS["word"]
    ids = tokenizer.encode("a dog")
    assert [tokenizer.surface(number) for number in ids] == [b" a", b" dog"]
    for given_stop in (stop, stop[::-1]):
        assert "".join(pieces(TextStream(tokenizer, [], given_stop), ids)) == left
