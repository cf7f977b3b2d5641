"""Laws of repeated searches that hold for any output of an engine."""

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from scripted_engine import ScriptedEngine
from tiny_model import tiny_tokenizers

from dragoman import Translator
from dragoman.engines.engine import Row

TOKENIZERS = tiny_tokenizers()
OUTPUTS = ("ein Hund", "Hund Hund Hund", "", "zwei Hunde 45", "ja ja ja 45", "the dog runs in the park", "狗…", "45 …")
SOURCES = st.sampled_from(["the dog runs in the park", "45 dogs", "", "  ", "a dog\u3000", "狗", "ha ha ha ha"])


def script(seed: int) -> ScriptedEngine:
    """Return outputs that depend on the text and the search settings only, as an engine does."""

    def written(row: Row) -> Sequence[str]:
        decided = Random(f"{seed}{row.text}{row.decoding.model_dump_json(exclude={'forbid', 'nbest'})}")
        return decided.sample(OUTPUTS, min(row.decoding.beam, len(OUTPUTS)))

    return ScriptedEngine(TOKENIZERS, written)


@given(st.lists(SOURCES, max_size=8), st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 9))
def test_the_returned_translation_is_never_worse(texts: list[str], seed: int, nbest: int, batch_size: int) -> None:
    translator = Translator(script(seed), TOKENIZERS)
    request = translator.request(guard=True, nbest=nbest, beam=3)
    guard = request.guard
    assert guard is not None
    first = translator.translate_nbest(texts, translator.request(nbest=nbest, beam=3))
    found = translator.translate_nbest(texts, request, batch_size)
    assert len(found) == len(texts)
    for text, before, after in zip(texts, first, found, strict=True):
        assert 1 <= len(after) <= len(before)
        findings = [guard.findings(text, each.text) for each in after]
        assert len(findings[0]) == min(map(len, findings)) <= len(guard.findings(text, before[0].text))
        assert all(findings) or not any(findings)
        if not guard.findings(text, before[0].text):
            assert after[0] == before[0]
        for each, left in zip(after, findings, strict=True):
            assert (each.guarded.left if each.guarded else ()) == left
    alone = [translator.translate_nbest([text], request, 1)[0] for text in texts]
    assert found == alone
