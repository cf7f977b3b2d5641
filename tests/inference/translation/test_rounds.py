"""Lines that are searched again are searched together, with the same results as alone."""

from collections.abc import Iterator, Sequence

import pytest
from scripted_engine import ScriptedEngine
from tiny_model import tiny_tokenizers

from dragoman import Translator
from dragoman.base.errors import ResourceError
from dragoman.decode.search import Hypothesis
from dragoman.engines.engine import Row
from dragoman.inference.translation.rounds.rounds import Rounds, Search, Steps

TOKENIZERS = tiny_tokenizers()


def loops(row: Row) -> list[str]:
    """Return a loop, or for a short row its text in upper case."""
    return [row.text.upper() if len(row.text) < 4 else "Hund Hund Hund"]


def test_the_parts_of_all_lines_are_searched_in_one_call() -> None:
    engine = ScriptedEngine(TOKENIZERS, loops)
    translator = Translator(engine, TOKENIZERS)
    texts = ["a b 71 c d 72 e", "f g 73 h i", "no number", "j k 74 l m"]
    found = translator.translate(texts, keep=["number"])
    assert found == ["A B 71 C D 72 E", "F G 73 H I", "Hund Hund Hund", "J K 74 L M"]
    first, parts = engine.asked
    assert [row.number for row in first] == [1, 2, 3, 4]
    assert [(row.number, row.text) for row in parts] == [
        (1, "a b"), (1, "c d"), (1, "e"), (2, "f g"), (2, "h i"), (4, "j k"), (4, "l m"),
    ]  # fmt: skip
    assert [translator.translate([text], keep=["number"])[0] for text in texts] == found


def test_constraints_and_guard_share_their_rounds() -> None:
    engine = ScriptedEngine(TOKENIZERS, loops)
    translator = Translator(engine, TOKENIZERS)
    kept, guarded = translator.request(keep=["number"]), translator.request(guard=True)
    texts = ["a b 71 c", "some dogs", "more dogs"]
    translator.translate(texts, requests=[kept, guarded, guarded])
    calls = [[row.number for row in call] for call in engine.asked]
    # the parts of line 1 are required and the searches of lines 2 and 3 optional, hence two calls in one round
    assert calls[:3] == [[1, 2, 3], [1, 1], [2, 3]] and all(call == [2, 3] for call in calls[3:])


class Narrow(ScriptedEngine):
    """Lacks memory for rows whose text is `wide`, and notices this after the previous row."""

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        for index, row in enumerate(rows):
            if row.text == "wide":
                raise ResourceError("too little memory")
            yield index, [Hypothesis((len(row.text),), 0.0, 0.0, finished=True)]


def searched(engine: ScriptedEngine, steps: dict[int, Steps], batch_size: int) -> list[int]:
    """Return the keys of the texts in the order in which their translations are complete."""
    rounds = Rounds(engine, batch_size)
    assert all(rounds.add(key, each) is None for key, each in steps.items())
    return [key for key, _ in rounds.run()]


def row(text: str) -> Row:
    return Row(1, text, (), Translator(Narrow(TOKENIZERS, loops), TOKENIZERS).request().decoding)


def test_an_optional_search_without_memory_has_no_answer_and_a_required_one_raises() -> None:
    engine = Narrow(TOKENIZERS, loops)
    answers: dict[str, object] = {}

    def steps(name: str, search: Search) -> Steps:
        answers[name] = yield search
        return []

    def run(**searches: Search) -> list[str]:
        answers.clear()
        named = {name: steps(name, each) for name, each in searches.items()}
        keys = dict(enumerate(named.values()))
        return [list(named)[key] for key in searched(engine, keys, 2)]

    narrow, wide = Search([row("a"), row("bc")], optional=True), Search([row("d"), row("wide")], optional=True)
    assert run(first=narrow, second=wide, third=narrow, fourth=Search([row("efg")])) == [
        "fourth", "first", "second", "third",
    ]  # fmt: skip
    assert answers["second"] is None and answers["third"] is None  # after the failure nothing else is computed
    assert [[each.tokens for each in hypotheses] for hypotheses in answers["first"]] == [[(1,)], [(2,)]]  # type: ignore[attr-defined]
    assert [[each.tokens for each in hypotheses] for hypotheses in answers["fourth"]] == [[(3,)]]  # type: ignore[attr-defined]
    with pytest.raises(ResourceError):
        run(first=narrow, second=wide._replace(optional=False))


def test_each_text_takes_as_many_rounds_as_it_needs() -> None:
    engine = ScriptedEngine(TOKENIZERS, lambda row: [row.text])

    def steps(count: int) -> Steps:
        for number in range(count):
            answer = yield Search([row(f"{count} {number}")])
            assert answer is not None and len(answer) == 1
        return []

    found = searched(engine, {count: steps(count) for count in (3, 1, 2)}, 8)
    assert found == [1, 2, 3]
    assert [[each.text for each in call] for call in engine.asked] == [
        ["1 0", "2 0", "3 0"],
        ["2 1", "3 1"],
        ["3 2"],
    ]


def test_a_text_that_needs_no_search_is_complete_at_once() -> None:
    def steps() -> Steps:
        return []
        yield

    rounds = Rounds(engine := ScriptedEngine(TOKENIZERS, loops), 8)
    assert rounds.add(1, steps()) == [] and not list(rounds.run()) and not engine.asked
