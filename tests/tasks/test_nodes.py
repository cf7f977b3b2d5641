"""Classification of the nodes of a graph: files, training with the stopping rule of the paper, all verbs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from cards import rows

from dragoman import NodePredictor, describe, evaluate_labels, inspect, predict, train
from dragoman.base.errors import ConfigError, DataError
from dragoman.checkpoint.tensors import load_tensors
from dragoman.cli.main import main
from dragoman.data.graphs import GraphConfig, read_graph
from dragoman.tasks.seeds import SeedResults
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import RunProgress

SIZE = 60


def write_graph(folder: Path) -> dict[str, str]:
    """Write two communities, A and B. A node has a feature of its community rarely, but its neighbours help."""
    draw = np.random.default_rng(3)
    sides = np.arange(SIZE) % 2
    lines = ["id\tsplit\tlabel\twords"]
    for number in range(SIZE):
        split = "train" if number < 16 else "valid" if number < 36 else "test" if number < 56 else "none"
        own = [2 * int(word) + sides[number] for word in draw.choice(10, 2, replace=False)]
        noise = draw.choice(20, 5, replace=False)
        words = " ".join(map(str, sorted({*map(int, own), *map(int, noise)})))
        lines.append(f"n{number}\t{split}\t{'' if split == 'none' else 'AB'[sides[number]]}\t{words}")
    chance = np.where(sides[:, None] == sides[None], 0.15, 0.01)
    pairs = np.argwhere(np.triu(draw.random((SIZE, SIZE)) < chance, 1))
    pairs = pairs[(pairs < SIZE - 1).all(1)]  # the last node is isolated
    (folder / "nodes.tsv").write_text("\n".join(lines) + "\n")
    (folder / "edges.tsv").write_text("".join(f"n{first}\tn{second}\n" for first, second in pairs))
    return {"nodes": str(folder / "nodes.tsv"), "edges": str(folder / "edges.tsv")}


def recipe(folder: Path, **train_settings: Any) -> dict[str, Any]:
    return {
        "task": {"kind": "nodes"},
        "data": write_graph(folder),
        "model": {"heads": 2, "width": 4, "dropout": 0.2, "attention_dropout": 0.2},
        "train": {
            "device": "cpu",
            "threads": 1,
            "schedule": {"peak": 0.02, "warmup": 0},
            "max_steps": 40,
            **train_settings,
        },
        "out": str(folder / "run"),
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nodes")
    train(recipe(folder), {"seeds": 2}, quiet=True)
    return folder


def test_learns_from_neighbours_and_is_evaluated_over_seeds(trained: Path) -> None:
    edges = {"edges": trained / "edges.tsv"}
    result = evaluate_labels(trained / "run", trained / "nodes.tsv", edges)
    assert len(result.models) == 2
    summary = result.summary["accuracy"]
    assert min(summary.values) >= 80
    assert result.reports[0].unit == "nodes" and result.reports[0].examples == 20
    assert "2 seeds, 20 nodes; mean ± sd" in str(result) and "always 'A'" in str(result)
    assert result.as_json()["seeds"]["accuracy"]["mean"] == pytest.approx(summary.mean)
    single = evaluate_labels(trained / "run" / "seed-2", trained / "nodes.tsv", {**edges, "split": "valid"})
    assert single.reports[0]["accuracy"].value is not None
    card = (trained / "run" / "seed-1" / "README.md").read_text()
    assert "\n# Node classifier" in card and "| A | 8 | 10 |" in card and "similar graphs best" in card


def test_predicts_one_line_per_node(trained: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder, output = trained / "run" / "seed-1", trained / "predictions.jsonl"
    assert predict(folder, trained / "nodes.tsv", output, {"edges": trained / "edges.tsv"}) == SIZE
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    assert [line["id"] for line in lines] == [f"n{number}" for number in range(SIZE)]
    assert all(sum(line["probabilities"].values()) == pytest.approx(1) for line in lines)
    assert all(max(line["probabilities"], key=line["probabilities"].get) == line["label"] for line in lines)
    given = ["-i", str(trained / "nodes.tsv"), f"edges={trained / 'edges.tsv'}", "split=test"]
    assert main(["predict", str(folder), *given]) == 0
    assert [json.loads(line) for line in capfd.readouterr().out.splitlines()] == lines[36:56]
    with pytest.raises(ConfigError, match="add edges=FILE"):
        predict(folder, trained / "nodes.tsv", output)
    with pytest.raises(ConfigError, match="use jsonl"):
        predict(folder, trained / "nodes.tsv", output, {"edges": trained / "edges.tsv"}, format="conll")


def test_draws_the_weights_of_neighbours(trained: Path) -> None:
    predictor = NodePredictor.load(trained / "run" / "seed-1", "cpu")
    graph = predictor.graph()
    inspection: Any = inspect(predictor, "n7", graph=graph)
    expected = {graph.ids[second] for first, second in graph.edges.T if graph.ids[first] == "n7"}
    for layer, heads in zip(inspection.layers, (2, 1), strict=True):
        assert set(layer.ids) == {"n7", *expected}
        assert layer.weights.shape == (heads, len(expected) + 1)
        np.testing.assert_allclose(layer.weights.sum(1), 1, rtol=1e-5)
    assert {row[1] for row in rows(inspection)} == {"node", "n7", *expected}
    isolated: Any = inspect(predictor, f"n{SIZE - 1}", graph=graph)
    assert [layer.ids for layer in isolated.layers] == [(f"n{SIZE - 1}",)] * 2
    out = trained / "inspection"
    assert main(["inspect", str(trained / "run" / "seed-1"), "n7", "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} >= {"neighbours.png", "neighbours.svg", "index.html", "attention.npz"}
    svg = (out / "neighbours.svg").read_text()
    assert "n7 (itself)" in svg and all(name in svg for name in expected)
    with pytest.raises(DataError, match="no node 'n99'"):
        inspect(predictor, "n99", graph=graph)
    with pytest.raises(ConfigError, match="both its nodes and its edges"):
        predictor.graph(trained / "nodes.tsv")


def test_an_interrupted_run_resumes_bit_for_bit(tmp_path: Path) -> None:
    whole, parts = {"out": str(tmp_path / "whole")}, {"out": str(tmp_path / "parts")}
    expected = train(recipe(tmp_path, max_steps=12), whole, quiet=True)
    train(recipe(tmp_path, max_steps=5), parts, quiet=True)
    found = train(recipe(tmp_path, max_steps=12), parts, resume=True, quiet=True)
    assert [each.scores for each in found.history[-7:]] == [each.scores for each in expected.history[-7:]]
    ours, theirs = (load_tensors(each.folder / "model.safetensors")[0] for each in (found, expected))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_describes_a_model(trained: Path) -> None:
    described = describe(trained / "run" / "seed-1")
    assert described.whole.parts and "node classifier, trained for" in described.notes[0]
    untrained = describe({"task": {"kind": "nodes"}, "model": {"layers": 3}})
    assert len(untrained.config.model_dump()) == len(described.config.model_dump())


def test_the_papers_stopping_rule() -> None:
    """A checkpoint needs the best accuracy and the best loss; patience ends only if both are worse."""
    progress = RunProgress(Horizon(0, 0.0, None))
    found = []
    for step, (accuracy, loss) in enumerate([(50, 1.0), (60, 1.2), (55, 0.9), (60, 0.9), (59, 0.95), (61, 0.8)], 1):
        progress.step = step
        better = progress.add_score((accuracy, -loss), (accuracy, -loss))
        found.append((better, progress.best_step, progress.waited))
    assert found == [(True, 1, 0), (False, 1, 0), (False, 1, 0), (True, 4, 0), (False, 4, 1), (True, 6, 0)]
    assert RunProgress.from_json(json.loads(json.dumps(progress.to_json()))) == progress


def test_patience_ends_a_run(tmp_path: Path) -> None:
    settings = recipe(tmp_path, max_steps=None, patience=3, selection="metric", schedule={"peak": 1e-30})
    result = train(settings, quiet=True)
    assert not isinstance(result, SeedResults)
    assert "3 validations without improvement" in result.reason


def test_a_batch_of_the_whole_graph_has_isolated_nodes_and_real_features(tmp_path: Path) -> None:
    (tmp_path / "nodes.tsv").write_text("words\tid\n1:0.5 0\ta\n\tb\n2:-3\tc\n")
    (tmp_path / "edges.tsv").write_text("c\ta\n")
    graph = read_graph(GraphConfig(nodes=tmp_path / "nodes.tsv", edges=tmp_path / "edges.tsv"), labelled=False)
    assert graph.columns.tolist() == [0, 1, 2] and graph.values.tolist() == [1, 0.5, -3]
    assert graph.starts.tolist() == [0, 2, 2]
    assert graph.edges.tolist() == [[0, 2], [2, 0]]
    assert graph.labels == (None, None, None)


HEADER = "id\tsplit\tlabel\twords"
WRONG_NODES = {
    "id\tlabel\twords\na\tA\t1": "nodes.tsv, line 1: there is no column split",
    f"{HEADER}\na\ttrain\tA": "line 2: the number of columns is 3, but should be 4",
    f"{HEADER}\na\tdev\tA\t1": "line 2: unknown split 'dev': expected one of train, valid, test, none",
    f"{HEADER}\na\ttest\t\t1": "line 2: a node of the set test has no label",
    f"{HEADER}\na\ttrain\tA\tx": "line 2: 'x' is not a feature",
    f"{HEADER}\na\ttrain\tA\t1:nan": "line 2: '1:nan' is not a feature",
    f"{HEADER}\na\ttrain\tA\t1 1": "line 2: the feature 1 occurs twice",
    f"{HEADER}\na\ttrain\tA\t1\na\tnone\t\t2": "line 3: the id 'a' is also that of line 2",
    HEADER: "contains no nodes",
}


@pytest.mark.parametrize("text", WRONG_NODES)
def test_wrong_nodes_are_reported(text: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.tsv").write_text(text + "\n")
    (tmp_path / "edges.tsv").write_text("")
    with pytest.raises(DataError) as error:
        read_graph(GraphConfig(nodes=tmp_path / "nodes.tsv", edges=tmp_path / "edges.tsv"))
    assert WRONG_NODES[text] in str(error.value)


@pytest.mark.parametrize(
    ("edges", "message"),
    [("a\tz\n", "line 1: the node 'z' is not in"), ("a b\n", "line 1: expected two ids separated by a tab, not 'a b'")],
)
def test_wrong_edges_are_reported(edges: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.tsv").write_text(f"{HEADER}\na\ttrain\tA\t1\nb\tvalid\tB\t1\n")
    (tmp_path / "edges.tsv").write_text(edges)
    with pytest.raises(DataError, match=message):
        read_graph(GraphConfig(nodes=tmp_path / "nodes.tsv", edges=tmp_path / "edges.tsv"))


def test_loops_and_repeated_edges_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nodes.tsv").write_text(f"{HEADER}\na\ttrain\tA\t1\nb\tvalid\tB\t1\n")
    (tmp_path / "edges.tsv").write_text("a\tb\nb\ta\na\ta\n")
    graph = read_graph(GraphConfig(nodes=tmp_path / "nodes.tsv", edges=tmp_path / "edges.tsv"))
    assert graph.pairs.tolist() == [[0, 1]]
    said = " ".join(capsys.readouterr().err.split())
    assert "1 edges connect a node with itself" in said and "1 edges are listed more than once" in said


def test_unsuitable_graphs_and_models_are_refused(trained: Path, tmp_path: Path) -> None:
    for lines, message in (
        ("a\ttrain\tA\t1\nb\ttrain\tB\t1", "has no nodes of the set valid"),
        ("a\ttrain\tA\t1\nb\ttrain\tA\t1\nc\tvalid\tA\t2", "all training nodes have the label 'A'"),
    ):
        (tmp_path / "nodes.tsv").write_text(f"{HEADER}\n{lines}\n")
        (tmp_path / "edges.tsv").write_text("a\tb\n")
        data = {"nodes": str(tmp_path / "nodes.tsv"), "edges": str(tmp_path / "edges.tsv")}
        with pytest.raises(DataError, match=message):
            train({"task": {"kind": "nodes"}, "data": data, "out": str(tmp_path / "run")}, quiet=True)
    (tmp_path / "nodes.tsv").write_text("id\twords\na\t500\n")
    (tmp_path / "edges.tsv").write_text("")
    predictor = NodePredictor.load(trained / "run" / "seed-1", "cpu")
    with pytest.raises(DataError, match="features up to 500, but the model was trained with 20"):
        predictor.predict(predictor.graph(tmp_path / "nodes.tsv", tmp_path / "edges.tsv"))
    assert main(["generate", str(trained / "run" / "seed-1"), "--prompt", "a"]) == 1


def test_the_loss_has_the_l2_penalty_of_all_parameters(tmp_path: Path) -> None:
    from dragoman.base.settings.load import load_settings
    from dragoman.tasks.nodes.config import NodesRun
    from dragoman.tasks.nodes.job import NodesJob, NodesObjective

    job = NodesJob(load_settings(recipe(tmp_path), [], NodesRun))
    job.prepare()
    model = job.build().eval()
    (batch,) = job.batches(job.plan(0), 0, 0, False)
    plain, penalised = NodesObjective(0.0)(model, batch), NodesObjective(0.1)(model, batch)
    squares = sum(float(parameter.detach().square().sum()) for parameter in model.parameters())
    assert float(penalised.total.detach() - plain.total.detach()) / 16 == pytest.approx(0.05 * squares, rel=1e-4)
    logits = model(*batch.model_inputs)[:16].detach()
    gold = torch.tensor([number % 2 for number in range(16)])
    assert float(plain.total.detach()) == pytest.approx(
        float(torch.nn.functional.cross_entropy(logits, gold, reduction="sum")), rel=1e-5
    )


def test_the_heads_of_a_node_are_listed_and_switched_off(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(trained / "run" / "seed-1")
    assert main(["inspect", "heads", model, "n3"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert sorted(names) == ["graph.attention:1:1", "graph.attention:1:2", "graph.attention:2:1"]
    assert main(["inspect", "heads", model, "n3", "--off", "graph.attention:1:2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["output"].endswith("for node n3") and printed["heads_off"] == ["graph.attention:1:2"]
    assert main(["inspect", "heads", model, "n3", "--target", "A"]) == 2
    assert "--target can only be used with a model of texts" in capsys.readouterr().err
    assert main(["inspect", "next", model, "n3"]) == 2
    assert "use a translation model" in capsys.readouterr().err
