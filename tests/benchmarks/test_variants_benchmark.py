"""benchmarks/variants: its design compared with the full product, resumption, and a report of made-up results."""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from repository import ROOT

from dragoman.models.kinds.encoder_decoder import ModelConfig

FOLDER = ROOT / "benchmarks" / "variants"
MODULES = ("factors", "covering", "design", "budget", "runs", "interactions", "picture", "report")


@pytest.fixture(scope="module")
def benchmark() -> Iterator[SimpleNamespace]:
    """The benchmark's modules, which are not a package."""
    sys.path.insert(0, str(FOLDER))
    yield SimpleNamespace(**{name: import_module(name) for name in MODULES})
    sys.path.remove(str(FOLDER))
    for name in MODULES:
        del sys.modules[name]


def test_design_contains_every_pair_of_the_full_product(benchmark: SimpleNamespace) -> None:
    known = {
        "encoder": ["transformer", "recurrent"],
        "decoder": ["transformer", "bytenet"],
        "attention": ["soft", "linear"],
        "positions": ["sinusoidal", "rotary"],
        "bytenet.stacked": ["true", "false"],
        "bytenet.cross_attention": ["null", "soft"],
    }
    possible = set()
    for combination in product(*known.values()):
        settings, effective = benchmark.factors.build(dict(zip(known, combination, strict=True)))
        pairs = benchmark.covering.pairs_of(effective, known)
        if not pairs <= possible and benchmark.factors.refusal(settings) is None:
            possible |= pairs
    design = benchmark.covering.cover(known)
    held = set()
    for levels in design.runs:
        settings, effective = benchmark.factors.build(levels)
        assert benchmark.factors.refusal(settings) is None
        held |= benchmark.covering.pairs_of(effective, known)
    assert held == possible
    assert not held & set(design.refused)
    everything = [
        frozenset(((one, first), (other, second)))
        for one, other in product(known, repeat=2)
        if one < other
        for first, second in product(known[one], known[other])
    ]
    assert set(everything) == held | set(design.refused)
    assert all(design.refused.values())
    assert len(design.runs) <= 14


@pytest.mark.slow
def test_pairs_of_other_runs_are_not_repeated(benchmark: SimpleNamespace) -> None:
    covering, build = benchmark.covering, benchmark.factors.build
    known = {"norm": ["pre", "post"], "activation": ["relu", "gelu"], "normalisation": ["layer", "rms"]}
    whole = covering.cover(known)
    first = covering.pairs_of(build(whole.runs[0])[1], known)
    rest = covering.cover(known, held=first)
    assert len(rest.runs) < len(whole.runs)
    held = set().union(*(covering.pairs_of(build(levels)[1], known) for levels in (whole.runs[0], *rest.runs)))
    assert len(held) == 12
    singles = [plan.effective for plan in benchmark.design.singles(set(known))]
    plans, refused = benchmark.design.pairs(set(known), singles)
    assert not refused
    usual = {"norm": "pre", "activation": "relu", "normalisation": "layer"}
    for plan in plans:
        assert sum(plan.effective[factor] != level for factor, level in usual.items()) >= 2


def test_singles_differ_from_their_centre_as_described(benchmark: SimpleNamespace) -> None:
    plans = benchmark.design.singles(set())
    centres = {plan.group: plan for plan in plans if plan.factor == "centre"}
    assert len(centres) == 4
    for plan in plans:
        if plan.factor not in ("centre", "family"):
            assert plan.effective[plan.factor] == plan.varied.partition(", ")[0]
            assert plan.settings != centres[plan.group].settings
    families = {(plan.effective["encoder"], plan.effective["decoder"]) for plan in plans}
    known = benchmark.factors.factors()
    assert families >= set(product(known["encoder"], known["decoder"]))
    assert {plan.factor for plan in plans} >= set(known) - {"encoder", "decoder"}


def test_finished_runs_are_not_repeated(
    benchmark: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def execute(settings: dict[str, Any], *_: object) -> dict[str, Any]:
        made.append(settings["out"])
        if len(made) == 2:
            raise ValueError("out of luck")
        return {"bleu": 50.0, "cpu_seconds": 1.0, "translations": ["a"]}

    monkeypatch.setattr(benchmark.runs, "execute", execute)
    monkeypatch.setattr(benchmark.runs, "ProcessPoolExecutor", lambda workers, mp_context: ThreadPoolExecutor(workers))
    design, budget = benchmark.design, benchmark.budget.EMBEDDED
    plans = [design.plan("g", "norm", level, {"norm": level}) for level in ("pre", "post")]
    # an ALiBi bias needs keys in order, which linear attention never compares
    plans.append(design.plan("g", "positions", "alibi", {"positions": "alibi", "attention": "linear"}))
    corpus = benchmark.budget.Corpus({}, (["a"], ["a"]))
    results = benchmark.runs.Results(tmp_path / "results.jsonl")

    benchmark.runs.make(plans, budget, corpus, tmp_path, workers=1)
    assert [line["status"] for line in results.read().values()] == ["done", "failed", "refused"]
    assert "out of luck" in list(results.read().values())[1]["message"]
    with results.path.open("a") as file:
        file.write('{"id": "cut sh')  # killed while writing
    benchmark.runs.make(plans, budget, corpus, tmp_path, workers=1)
    assert len(made) == 3 and made[2] == made[1] != made[0]
    assert [line["status"] for line in results.read().values()] == ["done", "done", "refused"]
    assert benchmark.runs.finished(results, budget) == plans[:2]
    assert benchmark.runs.finished(results, replace(budget, seed=2)) == []
    before = results.path.read_bytes()
    benchmark.runs.make(plans, budget, corpus, tmp_path, workers=1)
    assert results.path.read_bytes() == before


def line(benchmark: SimpleNamespace, group: str, factor: str, varied: str, **rest: Any) -> dict[str, Any]:
    plan = benchmark.design.Plan(group, factor, varied, {}, rest.pop("effective", {}), {})
    measured = {"signature": "s", "exact": 0.5, "valid_perplexity": 1.5, "parameters": 1000, "cpu_seconds": 9.0}
    return {"id": f"{group}{factor}{varied}", **asdict(plan), "budget": "b", "status": "done", **measured, **rest}


def test_report_compares_with_the_centre_and_lists_failures(benchmark: SimpleNamespace, tmp_path: Path) -> None:
    references = [f"sentence number {number} is here ." for number in range(40)]
    worse = [text.replace("is here", "was there") for text in references]
    family = {"encoder": "transformer", "decoder": "transformer"}
    lines = [
        line(benchmark, "around", "centre", "c", bleu=100.0, effective=family),
        line(benchmark, "around", "norm", "post", bleu=20.0, effective=family),
        {**line(benchmark, "around", "norm", "x"), "status": "failed", "message": "no | memory"},
    ]
    (tmp_path / "translations").mkdir()
    for each, text in zip(lines, (references, worse), strict=False):
        (tmp_path / "translations" / f"{each['id']}.txt").write_text("\n".join(text) + "\n")
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    (tmp_path / "refused.json").write_text(json.dumps({"a=1 with b=2": "never"}))
    benchmark.report.write_report(tmp_path, references)
    rows = [row.split(" | ") for row in (tmp_path / "table.md").read_text().splitlines()]
    assert rows[5:8] == [[""], ["Signature of BLEU: `s`."], ["Budget: `b`."]]
    assert rows[2][5] == ""
    assert rows[3][5].startswith("-") and float(rows[3][6]) < 0.01
    assert "failed: no \\| memory" in rows[4][-1] + rows[4][-2]
    assert "| transformer |" in (tmp_path / "pairs.md").read_text()
    assert "never: a=1 with b=2" in (tmp_path / "pairs.md").read_text()
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_interactions_find_exactly_the_simulated_ones(benchmark: SimpleNamespace) -> None:
    random = Random(1)
    runs = []
    for _ in range(150):
        effective = {factor: random.choice("xyz") for factor in "abcde"}
        bleu = 50 + 8 * (effective["a"] == "x") + random.gauss(0, 2)
        bleu += 12 * (effective["b"] == "y" and effective["c"] == "z")
        runs.append(line(benchmark, "pairs", "", "", bleu=bleu, effective=effective))
    text = benchmark.interactions.effects(runs).splitlines()
    main = {tuple(row.split(" | ")[:2]): row.split(" | ") for row in text if row.count(" | ") == 6}
    assert float(main["| a", "x"][5]) > 3 > float(main["| a", "y"][5])
    first, *others = (row.split(" | ") for row in text if "±" in row and row.startswith("|"))
    assert first[0] == "| b=y, c=z" and float(first[2].split(" ")[0]) > 4
    assert float(first[3].rstrip(" |")) < 0.01
    assert all(float(row[3].rstrip(" |")) > 0.01 for row in others if "b=" not in row[0] and "c=" not in row[0])


def test_the_dozen_is_twelve_models(benchmark: SimpleNamespace) -> None:
    models = {ModelConfig.model_validate(plan.settings["model"]).model_dump_json() for plan in benchmark.design.dozen()}
    assert len(models) == 12


def test_expensive_levels_exist_and_their_costs_are_multiplied(benchmark: SimpleNamespace) -> None:
    known = benchmark.factors.factors()
    for factor, costs in benchmark.factors.LEVEL_COSTS.items():
        assert set(costs) <= set(known[factor])
    expensive = {"subword": "character", "decoder": "recurrent", "norm": "pre"}
    assert benchmark.factors.cost(expensive) == pytest.approx(2.7 * 1.7)


def test_of_runs_with_equally_many_new_pairs_the_cheaper_is_preferred(benchmark: SimpleNamespace) -> None:
    known = {"subword": ["bpe", "character"], "norm": ["pre", "post"]}
    plain, expensive = ({"subword": subword, "norm": "pre"} for subword in known["subword"])
    left = benchmark.covering.pairs_of(plain, known) | benchmark.covering.pairs_of(expensive, known)
    worth = [benchmark.covering._worth(levels, known, left) for levels in (plain, expensive)]
    assert worth[0] == pytest.approx(2.7 * worth[1])


def test_reinforce_is_also_run_with_less_noise(benchmark: SimpleNamespace) -> None:
    plans = {plan.varied: plan for plan in benchmark.design.singles({"gradient"}) if plan.factor == "gradient"}
    plain, less_noise = (
        plans[name].settings["model"]["decoder"] for name in ("reinforce", "reinforce, soft baseline and start")
    )
    assert less_noise.pop("cross_attention") == {**plain.pop("cross_attention"), **benchmark.design.LESS_NOISE}
    assert less_noise == plain


def test_hard_attention_is_also_run_with_annealed_soft_attention(benchmark: SimpleNamespace) -> None:
    plans = {(plan.group, plan.varied): plan for plan in benchmark.design.singles(set())}
    annealed = [key for key in plans if key[1].endswith(", annealed")]
    assert len(annealed) == 2, "around the Transformer and around the recurrent model"
    for group, varied in annealed:
        made, plain = (plans[group, name].settings["model"]["decoder"] for name in (varied, "hard"))
        field = "attention" if made["kind"] == "recurrent" else "cross_attention"
        assert made[field].pop("soft_updates") == benchmark.design.SOFT_UPDATES > 0
        assert made == plain, "nothing else differs, and the plain run keeps its settings"
