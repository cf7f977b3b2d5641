"""Control by the server's settings, for clients that have no fields for it."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from scripted_server import posted, served, translator
from waiting import PATIENCE

from dragoman.addons.documents.document import translate_document
from dragoman.addons.documents.expected_spans import Edges, ExpectedSpans, has_words
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.service.control_defaults import ControlDefaults
from dragoman.base.errors import ConfigError, DataError
from dragoman.engines.engine import Row
from dragoman.inference.control.control import Control
from dragoman.inference.control.keep import KeepRules

PAIR = {"source": "en", "target": "de"}
SPANS = [
    "https://example.org/a_b?c=d", "a.b@example.org", "😆", "%1$s", "%(name)s", "{name}", "{0}", "{{x}}", "${x}",
    "$USER",    ":name", "__x__", "%{x}", '<x id="1"/>', "&amp;", "[[x]]", "@user", "#tag", "/etc/hosts", "1,234",
]  # fmt: skip


def forgetful(row: Row) -> Sequence[str]:
    """Translate words into capitals. Forget everything else unless there are constraints."""
    words = row.text.split()
    return [" ".join(word.upper() if word.isalpha() else word for word in words if row.constraints or word.isalpha())]


@pytest.mark.parametrize("span", SPANS)
def test_usual_spans_survive_by_default(span: str) -> None:
    text = f"hello {span} dog"
    with served({"en-de": forgetful}) as service:
        found = posted(service, "/translate", q=[text, span, "a dog"], **PAIR).json()["translatedText"]
        assert span in found[0] and "HELLO" in found[0] and found[1:] == [span, "A DOG"]
        assert span in posted(service, "/v1/translate", text=text, **PAIR).json()["translations"][0]["text"]
        without = posted(service, "/v1/translate", text=text, keep=[], **PAIR).json()["translations"][0]["text"]
        assert without == "HELLO DOG"
    with served({"en-de": forgetful}, control={"keep": []}) as service:
        assert posted(service, "/translate", q=text, **PAIR).json()["translatedText"] == "HELLO DOG"


def test_texts_that_keep_their_spans_are_searched_only_once_without_constraints() -> None:
    rows: list[Row] = []

    def script(row: Row) -> Sequence[str]:
        rows.append(row)
        return [row.text.upper().replace("%S", "%s")]

    with served({"en-de": script}) as service:
        found = posted(service, "/translate", q=["a %s dog 25", "a dog", "see 1,234.5"], **PAIR).json()
    assert found["translatedText"] == ["A %s DOG 25", "A DOG", "SEE 1,234.5"]
    assert len(rows) == 3 and not any(row.constraints for row in rows)


def test_numbers_may_be_written_as_in_the_target_language() -> None:
    expected = ExpectedSpans(KeepRules.of(["all"]))  # type: ignore[arg-type]
    assert expected.are_in("1,234.5 at 8 pm, 3 dogs", "1.234,5 um 20 Uhr, drei Hunde")
    assert expected.are_in("3% of $5", "3 Prozent von fünf $") and not expected.are_in("A dog for €5.", "Ein Hund.")
    assert not expected.are_in("5% off", "Rabatt") and not expected.are_in("It costs €5.", "Es kostet 5.")
    assert expected.are_in("-5 °C, €5", "−5\u202f°C, 5 Euro") and not expected.are_in("a 5km run", "ein Lauf von 5")
    assert not expected.are_in("50% of 100%", "50 von 100 Prozent") and expected.are_in("§ 5", "in §5")
    assert not expected.are_in("25 dogs", "26 Hunde") and not expected.are_in("see 😆", "siehe")
    rules = KeepRules.of(["all"])
    for text in ("https://a.b", "@a #b", "{x} 😆 12:30", "", "…"):
        assert not has_words(text, Control(keep=rules))
    for text in ("a", "see https://a.b", "{x} b"):
        assert has_words(text, Control(keep=rules))


def test_defaults_of_a_direction_override_those_for_all(tmp_path: Path) -> None:
    (tmp_path / "all.tsv").write_text("dog\tHund\n")
    (tmp_path / "french.tsv").write_text("dog\tchien\n")

    def script(row: Row) -> Sequence[str]:
        return [row.text.upper()]  # without the term, which is then appended

    settings = {
        "control": {"glossary": tmp_path / "all.tsv", "keep": ["url"]},
        "directions": [{"source": "en", "target": "fr", "glossary": tmp_path / "french.tsv", "keep": ["none"]}],
    }
    with served({"en-de": script, "en-fr": script}, **settings) as service:
        for target, translated in (("de", "A DOG Hund"), ("fr", "A DOG chien")):
            pair = {"source": "en", "target": target}
            assert posted(service, "/translate", q="a dog", **pair).json()["translatedText"] == translated
            own = posted(service, "/v1/translate", text="a dog", glossary={"dog": "Köter"}, **pair).json()
            assert own["translations"][0]["text"] == "A DOG Köter"
            none = posted(service, "/v1/translate", text="a dog", glossary={}, **pair).json()
            assert none["translations"][0]["text"] == "A DOG"
            assert posted(service, "/translate", q="a cat", **pair).json()["translatedText"] == "A CAT"


def test_a_default_guard_and_its_override() -> None:
    """A guard inspects the result of a plain search. Only a faulty sentence is searched again, with the guard."""

    def script(row: Any) -> list[str]:
        return [row.text if "cat" in row.text else row.text.upper()]

    with served({"en-de": script}, control={"guard": True}, limits={"beam": 6}) as service:
        requests: list[Any] = []
        submit = service.directions.models[0].batcher.submit

        def recorded(ticket: Any) -> None:
            requests.extend(request for _, request in ticket.lines)
            submit(ticket)

        service.directions.models[0].batcher.submit = recorded  # type: ignore[method-assign]
        posted(service, "/translate", q="a dog", **PAIR)
        posted(service, "/translate", q="a cat and two other cats", **PAIR)
        posted(service, "/v1/translate", text="a cat and two other cats", guard=False, **PAIR)
    assert [request.guard is not None for request in requests] == [False, False, True, False]
    assert requests[2].guard.max_beam == 6


def test_spans_survive_although_there_is_no_time_to_enforce_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts between the spans are then translated alone."""
    monkeypatch.setattr("dragoman.addons.serving.service.step_translation._REPAIR_FRACTION", 0.5 / PATIENCE)

    def script(row: Any) -> list[str]:
        if row.expected.constraints or row.constraints:
            time.sleep(0.3)
        return [row.text.upper()]

    q = [f"Hello %{number}$s, see {{name}} again!" for number in range(1, 9)]
    with served({"en-de": script}, limits={"seconds": PATIENCE}) as service:
        answer = posted(service, "/translate", q=q, **PAIR)
    assert answer.status_code == 200, answer.text
    assert answer.json()["translatedText"] == [f"HELLO %{number}$s, SEE {{name}} AGAIN!" for number in range(1, 9)]


def test_a_stream_reports_final_translations_only() -> None:
    with served({"en-de": forgetful}) as service:
        answer = posted(service, "/v1/translate", text="hello {name} dog", stream=True, **PAIR)
        lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [each.get("translation") for each in lines[:-1]] == ["HELLO {name} DOG"]


def test_documents_keep_spans_by_default() -> None:
    model = translator("en-de", forgetful)
    document = "hello {name} dog\n\nhttps://a.example/b\n\na dog\n"
    kept = translate_document(model, document)
    assert kept.text == "HELLO {name} DOG\n\nhttps://a.example/b\n\nA DOG\n"
    assert translate_document(model, "hello {name} dog", keep=["none"]).text == "HELLO DOG"


def test_invalid_defaults_are_reported_at_the_start(tmp_path: Path) -> None:
    for control, error, told in (
        ({"keep": ["numbers"]}, ConfigError, "control.keep: unknown kind 'numbers'"),
        ({"keep_patterns": ["(("]}, ConfigError, "not a regular expression"),
        ({"glossary": tmp_path / "none.tsv"}, DataError, "none.tsv"),
    ):
        with pytest.raises(error, match=told):
            ControlDefaults(ServeConfig.model_validate({"control": control}))


@pytest.mark.parametrize(
    ("text", "core"),
    [
        ("A boy is jumping 😆", "A boy is jumping"),
        ("😆👍 See that.", "See that."),
        ("@user @b A group #x. #a #b", "A group #x."),
        ("@user is nice", "@user is nice"),
        ("I love #berlin", "I love #berlin"),
        ("Done. https://a.b/c 😆 😆", "Done."),
        ("See https://a.b/c", "See https://a.b/c"),
        ("a 😆 b", "a 😆 b"),
        ("😆 @user Hello 😆", "Hello"),
        ("😆", ""),
        ("", ""),
    ],
)
def test_spans_around_a_sentence_are_not_translated(text: str, core: str) -> None:
    begin, end = Edges(Control(keep=KeepRules.of(["all"]))).trim(text)
    assert text[begin:end] == core
    assert Edges(Control()).trim(text) == (0, len(text.rstrip()))


def test_spans_around_a_sentence_stay_where_they_are() -> None:
    rows: list[Row] = []

    def script(row: Row) -> Sequence[str]:
        rows.append(row)
        return [row.text.upper()]

    with served({"en-de": script}) as service:
        text = "@user A dog runs. 😆 #a\n😆 It barks 👍👍"
        found = posted(service, "/translate", q=text, **PAIR).json()["translatedText"]
    assert found == "@user A DOG RUNS. 😆 #a\n😆 IT BARKS 👍👍"
    assert sorted(row.text for row in rows) == ["A dog runs.", "It barks"]


def test_every_client_reads_a_line_of_a_stream_as_one() -> None:
    """JSON strings may contain line breaks of Unicode, at which `str.splitlines` and httpx divide lines."""
    text = "a\x85dog\u2028and\u2029cat"
    with served({"en-de": lambda row: [row.text.upper()]}) as service:
        answer = posted(service, "/v1/translate", text=["\x85", text], stream=True, **PAIR)
        lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [each["text"] for each in lines[-1]["translations"]] == ["\x85", text.upper()]
