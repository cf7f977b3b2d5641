"""The guard of translations in documents: findings, sentences that are searched again, and those that stay wrong."""

from collections.abc import Sequence

import pytest
from scripted_engine import ScriptedEngine
from tiny_model import tiny_tokenizers

from dragoman import Translator
from dragoman.addons.documents.document import translate_document
from dragoman.checkpoint.meta import Meta
from dragoman.engines.engine import Row

GOOD = {"two dogs sleep": "zwei Hunde schlafen", "a dog runs fast": "ein Hund rennt schnell"}
BAD = "Hund Hund Hund Hund Hund"


@pytest.mark.parametrize("is_repaired", [True, False])
def test_a_document_reports_its_findings(is_repaired: bool) -> None:
    pytest.importorskip("sentencex")
    tokenizers = tiny_tokenizers()

    def script(row: Row) -> Sequence[str]:
        is_good = "two" in row.text or (is_repaired and row.decoding.no_repeat_ngram)
        return [GOOD[row.text.strip()] if is_good else BAD]

    meta = Meta(step=0, source_language="en", target_language="de")
    translator = Translator(ScriptedEngine(tokenizers, script), tokenizers, meta)
    page = "  two dogs sleep\n\na dog runs fast\n"
    done = translate_document(translator, page, guard=True)
    assert done.text == f"  zwei Hunde schlafen\n\n{GOOD['a dog runs fast'] if is_repaired else BAD}\n"
    assert (done.sentences, done.repaired, done.wrong) == (2, is_repaired, not is_repaired)
    unguarded = translate_document(translator, page)
    assert (unguarded.repaired, unguarded.wrong) == (0, 0)
