"""Translations with findings are searched again, and others are not touched; the engine's output is prescribed."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from scripted_engine import ScriptedEngine
from tiny_model import tiny_tokenizers

from dragoman import Sampling, Translator
from dragoman.base.errors import ConfigError, ResourceError
from dragoman.checkpoint.meta import Meta
from dragoman.engines.engine import Row
from dragoman.inference.translation.guard.guard import Finding, GuardOutcome

TOKENIZERS = tiny_tokenizers()
LOOP = Finding("repetition", "Hund")
GOOD = {"two dogs sleep": "zwei Hunde schlafen", "12 dogs": "12 Hunde", "a dog runs fast": "ein Hund rennt schnell"}


def translator(script: Callable[[Row], Sequence[str]], **changes: object) -> tuple[Translator, ScriptedEngine]:
    engine = ScriptedEngine(TOKENIZERS, script, **changes)
    return Translator(engine, TOKENIZERS, Meta(step=0, source_language="en", target_language="de")), engine


def name_of(row: Row) -> str:
    """Return which search this is."""
    config = row.decoding
    if row.constraints:
        return "kept numbers"
    if config.no_repeat_ngram:
        return "no repetition"
    if config.minimum_length:
        return "longer"
    if config.beam == 1:
        return "greedy"
    if config.beam > 5:
        return "wide"
    return "first" if config.nbest == 1 else "list"


def good_by(search: str, bad: str) -> Callable[[Row], list[str]]:
    """The first text is bad until the search named here; the others are good at once."""
    return lambda row: [
        bad if row.text == "a dog runs fast" and name_of(row) != search else GOOD.get(row.text.strip(), row.text)
    ]


@pytest.mark.parametrize(
    ("bad", "kind", "search"),
    [
        ("ein Hund Hund Hund", "repetition", "list"),
        ("ein Hund Hund Hund", "repetition", "no repetition"),
        ("ein Hund Hund Hund", "repetition", "wide"),
        ("", "empty", "greedy"),
        ("", "empty", "longer"),
        ("a dog runs fast", "copy", "greedy"),
        ("a dog runs fast", "copy", "wide"),
    ],
)
def test_the_first_search_that_helps_decides(bad: str, kind: str, search: str) -> None:
    texts = ["two dogs sleep", "a dog runs fast", "", "12 dogs"]
    guarded, engine = translator(good_by(search, bad))
    found = guarded.translate_nbest(texts, guarded.request(guard=True))
    assert [each[0].text for each in found] == ["zwei Hunde schlafen", GOOD["a dog runs fast"], "", "12 Hunde"]
    assert [each[0].guarded for each in found[:1] + found[2:]] == [None] * 3
    told = found[1][0].guarded
    assert told is not None and told.left == () and told.search == search and told.found[0].kind == kind
    assert [[row.text for row in call] for call in engine.asked[1:]] == [["a dog runs fast"]] * (len(engine.asked) - 1)
    assert name_of(engine.asked[-1][0]) == search


def test_nothing_is_searched_again_without_guard_or_without_cause() -> None:
    loops, engine = translator(lambda row: ["Hund Hund Hund"])
    assert loops.translate_nbest(["a dog"])[0][0].guarded is None
    assert len(engine.asked) == 1
    good, engine = translator(lambda row: [GOOD[row.text]])
    plain = good.translate_nbest(list(GOOD))
    assert good.translate_nbest(list(GOOD), good.request(guard=True)) == plain
    assert len(engine.asked) == 2


def test_the_first_translation_is_kept_if_nothing_is_better() -> None:
    guarded, engine = translator(lambda row: ["Hund Hund Hund" + " Hund" * (name_of(row) != "first")])
    ((best,),) = guarded.translate_nbest(["a dog"], guarded.request(guard=True))
    assert best.text == "Hund Hund Hund"
    assert best.guarded == GuardOutcome((LOOP,), (LOOP,))
    assert [name_of(call[0]) for call in engine.asked] == ["first", "list", "no repetition", "wide"]


def test_fewer_findings_are_better_than_more() -> None:
    """Of a list, the first translation with the fewest findings; unfinished ones come after finished ones."""
    bad = {"first": ["Hund Hund Hund 4"], "list": ["ja ja ja 7", "ja ja ja 30", "30…"], "wide": ["30 30 30"]}
    guarded, _ = translator(lambda row: bad.get(name_of(row), bad["first"]))
    ((best,),) = guarded.translate_nbest(["30 dogs"], guarded.request(guard=True))
    assert best.text == "ja ja ja 30"
    assert best.guarded is not None and best.guarded.search == "list"
    assert [finding.kind for finding in best.guarded.found] == ["repetition", "numbers"]
    assert best.guarded.outcomes() == {"repeated a phrase": False, "had other numbers than their source": True}


def test_results_do_not_depend_on_other_texts() -> None:
    texts = ["a dog runs fast", "12 dogs", "two dogs sleep", "45 men", "a dog runs fast", "a man"] * 2
    guarded, _ = translator(
        lambda row: ["viele"] if row.text == "45 men" and name_of(row) != "wide" else good_by("list", "")(row)
    )
    together = guarded.translate_nbest(texts, guarded.request(guard=True))
    alone = [guarded.translate_nbest([text], guarded.request(guard=True), batch_size=1)[0] for text in texts]
    assert together == alone
    order = list(range(len(texts)))[::-1]
    assert guarded.translate_nbest([texts[place] for place in order], guarded.request(guard=True), 3) == [
        together[place] for place in order
    ]
    assert guarded.translate(texts, guard=True) == [best[0].text for best in together]


def test_lists_contain_translations_without_findings() -> None:
    guarded, engine = translator(lambda row: ["Hund Hund Hund", "ein Hund", "Hunde Hunde Hunde", "der Hund"])
    request = guarded.request(guard=True, nbest=4)
    (found,) = guarded.translate_nbest(["a dog"], request)
    assert [each.text for each in found] == ["ein Hund", "der Hund"]
    assert found[0].guarded == GuardOutcome((LOOP,), ()) and len(engine.asked) == 1
    every, _ = translator(lambda row: ["Hund Hund Hund", "Hund Hund Hund Hund"][: row.decoding.nbest])
    assert [each.text for each in every.translate_nbest(["a dog"], every.request(guard=True, nbest=2))[0]] == [
        "Hund Hund Hund",
        "Hund Hund Hund Hund",
    ]


def test_constraints_hold_after_another_search() -> None:
    """The request stays the same, with phrases, prefix and tags; results that violate them are not candidates."""
    outputs = {1: ["Katze Katze Katze"], 5: ["ein Tier", "ein Hund", "die Katze"]}
    guarded, engine = translator(lambda row: outputs[row.decoding.nbest])
    request = guarded.request(guard=True, constraints=["Katze"], prefix="Die")
    ((best,),) = guarded.translate_nbest(["a cat"], request)
    assert best.text == "die Katze"
    outputs[5] = outputs[10] = ["ein Tier"]
    ((best,),) = guarded.translate_nbest(["a cat"], request)
    assert best.text == "Katze Katze Katze" and not best.patched
    assert len(engine.asked) == 2 + 4
    assert all(row.constraints and row.prefix.ids for call in engine.asked for row in call)


def test_numbers_are_kept_where_they_changed() -> None:
    guarded, engine = translator(lambda row: [row.text.split()[0] + " Hunde" if row.constraints else "46 Hunde"])
    ((best,),) = guarded.translate_nbest(["45 dogs"], guarded.request(guard=True))
    assert [bool(call[0].constraints) for call in engine.asked] == [False, False, True]
    assert best.text == "45 Hunde" and best.guarded is not None and best.guarded.search == "kept numbers"
    assert not best.guarded.left


def test_searches_that_an_engine_does_not_support_are_skipped() -> None:
    guarded, engine = translator(good_by("wide", "Hund Hund Hund"), refused=("no_repeat_ngram",))
    assert guarded.translate(["a dog runs fast"], guard=True) == [GOOD["a dog runs fast"]]
    assert "no repetition" not in [name_of(call[0]) for call in engine.asked]


def test_too_little_memory_for_another_search_costs_no_line() -> None:
    def script(row: Row) -> list[str]:
        if name_of(row) != "first":
            raise ResourceError("too little memory")
        return ["Hund Hund Hund"]

    guarded, _ = translator(script)
    assert guarded.translate(["a dog"] * 3, guard=True) == ["Hund Hund Hund"] * 3


def test_a_model_of_one_language_may_copy() -> None:
    engine = ScriptedEngine(TOKENIZERS, lambda row: [row.text])
    for target, searches in (("en", 1), ("de", 4)):
        engine.asked.clear()
        model = Translator(engine, TOKENIZERS, Meta(step=0, source_language="en", target_language=target))
        assert model.translate(["the dog runs in the park"], guard=True) == ["the dog runs in the park"]
        assert len(engine.asked) == searches


def test_a_search_without_repetition_can_write_a_phrase_twice_in_a_row_and_not_three_times() -> None:
    guarded, engine = translator(lambda row: ["der Hund der Hund der Hund"])
    groups = {"diversity": {"groups": 2}, "beam": 4}
    guarded.translate_nbest(["a dog"], guarded.request(guard=True, search=groups))
    assert [call[0].decoding.diversity is None for call in engine.asked] == [False, True, True, True]
    (size,) = {call[0].decoding.no_repeat_ngram for call in engine.asked} - {0}
    for times in (2, 3):
        tokens = TOKENIZERS.target.encode(" ".join(["der Hund"] * times))
        runs = [tuple(tokens[place : place + size]) for place in range(len(tokens) - size + 1)]
        assert (len(set(runs)) == len(runs)) == (times == 2)


def test_sampling_is_refused() -> None:
    guarded, _ = translator(lambda row: ["ein Hund"])
    with pytest.raises(ConfigError, match="cannot be combined with a guard"):
        guarded.request(guard=True, sampling=Sampling())


def test_other_searches_keep_the_other_settings() -> None:
    guarded, engine = translator(lambda row: ["Hund Hund Hund"])
    request = guarded.request(guard=True, length_penalty=1.5, search={"maximum_length": 30, "no_repeat_ngram": 2})
    guarded.translate_nbest(["a dog"], replace(request, tags=()))
    for call in engine.asked:
        assert call[0].decoding.length_penalty.alpha == 1.5 and call[0].decoding.maximum_length == 30
        assert call[0].decoding.no_repeat_ngram == 2
