"""The route /v1/predict: labels of texts from one or several models, with the limits of all routes."""

import asyncio
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from scripted_server import FREE, asked, listening
from tiny_predictor import HEADS, TEXTS, write_predictor
from waiting import PATIENCE

from dragoman import Client, NodePredictor, Predictor, train
from dragoman.addons.serving.client import AsyncClient, ServerError
from dragoman.addons.serving.config import EngineConfig, ModelConfig, ServeConfig
from dragoman.addons.serving.models.served_models import Directions
from dragoman.addons.serving.models.served_predictors import Predictors, ServedPredictor
from dragoman.addons.serving.service.service import Service
from dragoman.base.errors import ConfigError, ModelError
from dragoman.cli.main import main
from dragoman.data.labelled.examples import LabelledText, TaggedSentence


@contextmanager
def served(folders: dict[str, Path], **settings: Any) -> Iterator[Service]:
    """A service with these prediction models."""
    models = [{"path": str(path), "name": name} for name, path in folders.items()]
    values = {"models": models, "log": False, "access": FREE, "hosts": ["server"], **settings}
    config = ServeConfig.model_validate(values)
    measured: list[tuple[str, int, int]] = []
    service = Service(
        config.limits,
        None,
        config.queue,
        lambda model, batch: measured.append((model, batch.texts, batch.tokens)),
    )
    predictors = [ServedPredictor(each, config.engine, str(each.name)) for each in config.models]
    service.open(Directions([], config.pivots), Predictors(predictors))
    service.config, service.measured = config, measured  # type: ignore[attr-defined]
    try:
        yield service
    finally:
        service.close()


def predicted(service: Service, **body: Any) -> httpx.Response:
    return asked(service, lambda client: client.post("/v1/predict", json=body))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: write_predictor(tmp_path_factory.mktemp(name) / name, name) for name in HEADS}


def test_predictions_equal_those_of_the_predictor(folders: dict[str, Path]) -> None:
    expected = [each.as_json() for each in Predictor.load(folders["requests"]).predict(TEXTS)]
    with served({"requests": folders["requests"]}) as service:
        answer = predicted(service, text=TEXTS).json()
        assert answer["model"] == "requests"
        for one, other in zip(answer["predictions"], expected, strict=True):
            assert one["label"] == other["label"] and list(one["probabilities"]) == HEADS["requests"]["labels"]
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
        single = predicted(service, text=TEXTS[0], model="requests").json()["predictions"]
        assert len(single) == 1 and single[0]["label"] == expected[0]["label"]
        assert predicted(service, text=[]).json()["predictions"] == []
        tokens = sum(each.tokens for each in Predictor.load(folders["requests"]).encode(TEXTS))
        assert service.measured[0] == ("requests", 4, tokens)  # type: ignore[attr-defined]


def test_pairs_words_and_questions(folders: dict[str, Path]) -> None:
    words, question = ["Frau", "Anna", "ist"], {"question": "Wo?", "context": "Das Paket ist da."}
    with served(folders) as service:
        pair = predicted(service, model="scores", text={"text": "Wo", "pair": "da"}).json()["predictions"][0]
        tags = predicted(service, model="tags", text={"words": words}).json()["predictions"][0]
        answer = predicted(service, model="answers", text=question).json()["predictions"][0]
        models = asked(service, lambda client: client.get("/v1/models")).json()["models"]
    (expected,) = Predictor.load(folders["scores"]).predict([LabelledText(("Wo", "da"))])
    assert pair["value"] == pytest.approx(expected.as_json()["value"], abs=1e-5)
    (expected,) = Predictor.load(folders["tags"]).predict([TaggedSentence(tuple(words))])
    assert tags["tags"] == expected.as_json()["tags"] and tags["words"] == words
    assert answer["answer"] == question["context"][answer["start"] : answer["end"]] != ""
    assert [each["name"] for each in models] == list(HEADS)
    assert models[0] == {
        "kind": "prediction",
        "task": "classification",
        "name": "requests",
        "labels": HEADS["requests"]["labels"],
    }


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"text": "a"}, 400, "name one of requests, tags, answers, scores"),
        ({"text": "a", "model": "none"}, 404, "no prediction model of this name"),
        ({"text": "a", "model": "answers"}, 400, "expected a question and a context"),
        ({"text": {"words": ["a"]}, "model": "requests"}, 400, "expected a text or a pair of texts"),
        ({"text": {"text": "a", "pair": "b", "third": "c"}, "model": "requests"}, 400, "Invalid request"),
        ({"text": 7, "model": "requests"}, 400, "Invalid request"),
        ({"text": "a", "model": "requests", "beam": 3}, 400, "beam"),
        ({"model": "requests"}, 400, "text"),
        ({"text": ["a"] * 3, "model": "requests"}, 400, "3 texts, but a list has at most 2"),
        ({"text": {"text": "a" * 60, "pair": "b" * 60}, "model": "requests"}, 400, "120 characters"),
    ],
)
def test_invalid_requests_are_explained(
    folders: dict[str, Path], body: dict[str, Any], status: int, reason: str
) -> None:
    with served(folders, limits={"texts": 2, "characters": 100}) as service:
        answer = predicted(service, **body)
    assert answer.status_code == status and reason in answer.json()["error"], answer.text


def test_an_error_of_one_text_is_in_its_place(folders: dict[str, Path]) -> None:
    with served({"requests": folders["requests"]}) as service:
        good, bad, other = predicted(service, text=["a", {"words": ["a"]}, "b"]).json()["predictions"]
    assert list(bad) == ["error"] and "text 2: expected a text or a pair" in bad["error"]
    assert "label" in good and "label" in other


def test_cut_texts_are_reported(tmp_path: Path) -> None:
    folder = write_predictor(tmp_path / "short", "requests", length=12)
    with served({"short": folder}) as service:
        short, long = predicted(service, text=["a" * 10, "a" * 17]).json()["predictions"]
    assert "cut" not in short and long["cut"] == 7


def test_quotas_count_tokens(folders: dict[str, Path]) -> None:
    access = {"tokens_per_minute": 40, "requests_per_minute": 10, "loopback_quotas": True}
    with served({"requests": folders["requests"]}, access=access) as service:

        async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
            return [await client.post("/v1/predict", json={"text": "a" * 18}) for _ in range(3)]

        answers = asked(service, work)
    assert [each.status_code for each in answers] == [200, 200, 429] and answers[2].headers["retry-after"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes")
    rows = ["id\tsplit\tlabel\twords", "a\ttrain\tred\t0", "b\ttrain\tblue\t1 2:0.5", "c\tvalid\tred\t0"]
    (folder / "nodes.tsv").write_text("\n".join(rows))
    (folder / "edges.tsv").write_text("a\tc\nb\tc\n")
    data = {name: str(folder / f"{name}.tsv") for name in ("nodes", "edges")}
    recipe = {"task": {"kind": "nodes"}, "data": data, "out": str(folder / "run")}
    train(recipe, {"train.max_steps": 1, "train.device": "cpu"}, quiet=True)
    return folder / "run"


def test_nodes_of_graphs(nodes: Path, folders: dict[str, Path], tmp_path: Path) -> None:
    predictor = NodePredictor.load(nodes, "cpu")
    known = dict(zip("abc", predictor.predict(predictor.graph()), strict=True))
    graph = {
        "nodes": [{"id": "x", "words": "0"}, {"id": "y", "words": "1 2:0.5"}, {"id": "z"}],
        "edges": [["x", "y"], ["y", "z"], ["y", "x"], ["z", "z"]],
    }
    (tmp_path / "n.tsv").write_text("id\twords\nx\t0\ny\t1 2:0.5\nz\t\n")
    (tmp_path / "e.tsv").write_text("x\ty\ny\tz\n")
    new = dict(zip("xyz", predictor.predict(predictor.graph(tmp_path / "n.tsv", tmp_path / "e.tsv")), strict=True))
    with served({"nodes": nodes, "requests": folders["requests"]}) as service:
        found = predicted(service, model="nodes", text=[{"node": "c"}, {"node": "a"}]).json()["predictions"]
        others = predicted(service, model="nodes", text=[{"node": "z"}, {"node": "y"}], graph=graph).json()
        models = asked(service, lambda client: client.get("/v1/models")).json()["models"]
        mixed = predicted(service, model="nodes", text=[{"node": "a"}, {"node": "q"}, "a"]).json()["predictions"]
        wrong = [
            predicted(service, model="nodes", text={"node": "x"}, graph=each)
            for each in (
                {"nodes": []},
                {"nodes": [{"id": "x"}, {"id": "x"}]},
                {"nodes": [{"id": "x"}], "edges": [["x", "y"]]},
                {"nodes": [{"id": "x", "words": "-1"}]},
                {"nodes": [{"id": "x", "words": "700"}]},
            )
        ]
        misplaced = predicted(service, model="requests", text={"node": "a"})
    for node, each in [*zip("ca", found, strict=True), *zip("zy", others["predictions"], strict=True)]:
        expected = ({**known, **new})[node].as_json()
        assert each["label"] == expected["label"]
        assert each["probabilities"] == pytest.approx(expected["probabilities"], abs=1e-5)
    assert models[0] == {"name": "nodes", "kind": "prediction", "task": "nodes", "labels": ["blue", "red"]}
    assert "label" in mixed[0] and "no node 'q'" in mixed[1]["error"] and "expected a node" in mixed[2]["error"]
    assert [each.status_code for each in (*wrong, misplaced)] == [400] * 6
    reasons = ["no nodes", "not distinct", "not among its nodes", "'-1' is not a feature", "features up to 700"]
    for each, reason in zip(wrong, reasons, strict=True):
        assert reason in each.json()["error"]


def test_a_graph_whose_files_are_missing(nodes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(nodes, tmp_path / "moved")
    config = (tmp_path / "moved" / "config.yaml").read_text()
    (tmp_path / "moved" / "config.yaml").write_text(config.replace("nodes.tsv", "gone.tsv"))
    with served({"nodes": tmp_path / "moved"}) as service:
        known = predicted(service, text={"node": "a"})
        new = predicted(service, text={"node": "a"}, graph={"nodes": [{"id": "a", "words": "1"}]})
    assert "only nodes of graphs in the requests" in capsys.readouterr().err
    assert known.status_code == 400 and "send the field graph" in known.json()["error"]
    assert new.json()["predictions"][0]["label"] in {"red", "blue"}


def test_a_full_queue_and_a_slow_prediction(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    original, answered = Predictor.predict_encoded, threading.Event()

    def slowly(self: Predictor, *arguments: Any, **options: Any) -> Any:
        assert answered.wait(PATIENCE)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Predictor, "predict_encoded", slowly)
    with served({"requests": folders["requests"]}, queue={"max_tokens": 30}, limits={"seconds": 1}) as service:

        async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
            posts = (client.post("/v1/predict", json={"text": "a" * 20}) for _ in range(2))
            answers = await asyncio.gather(*posts)
            answered.set()
            return list(answers)

        answers = asked(service, work)
    assert {each.status_code for each in answers} == {503}
    reasons = {each.json()["error"] for each in answers}
    assert reasons == {"the queue is full: try again later", "the prediction took longer than 1 seconds"}


def test_a_model_without_a_head_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HEADS, "none", {"kind": "none"})
    folder = write_predictor(tmp_path / "none", "none")
    with pytest.raises(ModelError, match="none has no head, so it predicts no labels"):
        ServedPredictor(ModelConfig(path=folder), EngineConfig(device="cpu"), "body")


def test_a_server_without_translators(folders: dict[str, Path]) -> None:
    async def work(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [
            await client.get("/languages"),
            await client.get("/health/ready"),
            await client.get("/"),
            await client.get("/frontend/settings"),
            await client.post("/detect", json={"q": "a"}),
            await client.post("/v1/translate", json={"text": "a", "target": "de"}),
            await client.post("/translate", json={"q": "a", "source": "en", "target": "de"}),
        ]

    with served({"requests": folders["requests"]}) as service:
        languages, ready, *others = asked(service, work)
    assert languages.json() == [] and ready.status_code == 200
    assert all(each.status_code in (400, 404) and "predict" in each.json()["error"] for each in others), [
        each.text for each in others
    ]


def test_a_changed_folder_is_reloaded(folders: dict[str, Path], tmp_path: Path) -> None:
    config = ServeConfig.model_validate({"models": [{"path": str(write_predictor(tmp_path / "m", "requests"))}]})
    served_model = ServedPredictor(config.models[0], config.engine, "m")
    before = served_model.tasks[""]
    assert not served_model.reload() and served_model.tasks[""] is before
    for path in (tmp_path / "m").iterdir():
        path.unlink()
    write_predictor(tmp_path / "m", "requests", seed=2)
    assert served_model.reload() and served_model.tasks[""] is not before


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ("native", "float32")),
        ({"precision": "int8"}, ("native", "int8")),
        ({"name": "torch", "precision": None}, ("torch", "float32")),
        ({"name": "ctranslate2"}, ("native", "float32")),
    ],
)
def test_the_engine_of_prediction_models(
    settings: dict[str, Any], expected: tuple[str, str], folders: dict[str, Path]
) -> None:
    config = EngineConfig.model_validate({"device": "cpu", **settings})
    model = ServedPredictor(ModelConfig(path=folders["requests"]), config, "m")
    predictor: Any
    (predictor,) = model.tasks.values()
    assert (predictor.engine.name, predictor.engine.precision) == expected
    assert model.description["precision"] == expected[1]


def test_engines_and_precisions_of_labels(folders: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown engine is an error; a precision that no engine has for labels leads to float32, with a warning."""
    config = EngineConfig(device="cpu", name="tensorflow")
    with pytest.raises(ConfigError, match="requests: unknown engine 'tensorflow': use auto, native, torch"):
        ServedPredictor(ModelConfig(path=folders["requests"]), config, "m")
    capsys.readouterr()
    model = ServedPredictor(ModelConfig(path=folders["requests"]), EngineConfig(device="cpu", precision="float16"), "m")
    assert model.description["precision"] == "float32"
    assert "computing in float32, because no engine can compute in float16" in capsys.readouterr().err


def test_clients(folders: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = [each.as_json()["label"] for each in Predictor.load(folders["requests"]).predict(TEXTS)]
    with served({"requests": folders["requests"]}) as service, listening(service) as url:
        with Client(url) as client:
            assert [each["label"] for each in client.predict(TEXTS)] == expected
            assert client.predict(TEXTS[0])["label"] == expected[0]
            assert client.predict({"text": "a", "pair": "b"})["label"] in HEADS["requests"]["labels"]
            assert client.models()[0]["task"] == "classification"
            with pytest.raises(ServerError, match="expected a text or a pair"):
                client.predict({"words": ["a"]})

        async def several() -> list[dict[str, Any]]:
            async with AsyncClient(url) as other:
                return list(await asyncio.gather(*map(other.predict, TEXTS)))

        assert [each["label"] for each in asyncio.run(several())] == expected
        (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
        assert main(["client", url, "--predict", "-i", str(tmp_path / "texts.txt"), "--quiet"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [json.loads(line)["label"] for line in lines] == expected
        assert main(["client", url, "--predict", "--target", "de"]) != 0
        assert main(["client", url]) != 0
        assert "use --target, or --predict" in " ".join(capsys.readouterr().err.split())


def test_a_model_with_several_tasks_is_asked_by_their_names(tmp_path: Path) -> None:
    folder = write_predictor(tmp_path / "several", "several")
    with served({"several": folder}) as service:
        found = {name: predicted(service, text=TEXTS[:2], task=name).json() for name in ("requests", "scores")}
        assert predicted(service, text="ok", task="tags").status_code == 400
        missing = predicted(service, text="ok")
        models = asked(service, lambda client: client.get("/v1/models")).json()["models"]
    for name, answer in found.items():
        alone = Predictor.load(folder, "cpu", task=name).predict(TEXTS[:2])
        assert answer["predictions"] == [each.as_json() for each in alone]
    assert missing.status_code == 400
    assert "task: the model several has several tasks: name one of requests, scores" in missing.json()["error"]
    (model,) = models
    assert model["tasks"]["requests"] == {"task": "classification", "labels": HEADS["requests"]["labels"]}


def test_a_task_of_a_model_with_only_one_is_an_error(tmp_path: Path) -> None:
    with served({"requests": write_predictor(tmp_path / "requests", "requests")}) as service:
        answer = predicted(service, text="ok", task="requests")
    assert answer.status_code == 400 and "has only one task: leave out the field" in answer.json()["error"]


def test_trees_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HEADS, "trees", {"kind": "chart", "labels": ["NP", "S"], "tags": [".", "NN"], "hidden": 4})
    folder = write_predictor(tmp_path / "trees", "trees")
    (expected,) = (each.as_json() for each in Predictor.load(folder).predict(["Wo ist ?"]))
    with served({"trees": folder}) as service:
        answer = predicted(service, text=["Wo ist ?", {"words": ["Wo", "ist", "?"]}, ""]).json()
        refused = predicted(service, text={"words": ["Wo"], "features": [["x"]]})
    text, words, blank = answer["predictions"]
    assert text["tree"] == words["tree"] == expected["tree"]
    assert text["words"] == ["Wo", "ist", "?"] and text["score"] == pytest.approx(expected["score"], abs=1e-4)
    assert blank["words"] == []
    assert refused.status_code == 400
    assert "expected the words of a sentence to parse" in refused.text
