"""The metadata of a model card: the YAML at its top that the Hugging Face Hub and its libraries read.

Keys: https://huggingface.co/docs/hub/model-cards and https://github.com/huggingface/hub-docs/blob/main/modelcard.md.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import yaml

from dragoman.checkpoint.card.languages import CardLanguages
from dragoman.checkpoint.card.markdown import UNKNOWN, without_folders
from dragoman.checkpoint.meta import Meta, RecordedScore
from dragoman.models.kinds.registry import ModelKind
from dragoman.text.languages.codes import base_language

LIBRARY = "dragoman"

_LICENCES = frozenset(
    (
        "apache-2.0 mit openrail afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear cc "
        "cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 "
        "cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 "
        "cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 "
        "eupl-1.1 eupl-1.2 agpl-3.0 gfdl gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc lppl-1.3c ms-pl mpl-2.0 "
        "odc-by odbl osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl"
    ).split()
)
"""The licences that the Hub knows by these identifiers (https://huggingface.co/docs/hub/repositories-licenses)."""

_HEADS: Mapping[str, str] = {
    "classification": "text-classification",
    "regression": "text-classification",
    "tagging": "token-classification",
    "span": "question-answering",
    "masked_language_model": "fill-mask",
    "replaced_token_detection": "fill-mask",
    "none": "feature-extraction",
}
"""The Hub's task of prediction models, by the kind of the head."""

_KINDS: Mapping[str, str] = {
    "encoder_decoder": "translation",
    "statistical": "translation",
    "decoder_only": "text-generation",
    "ngram": "text-generation",
    "node_classifier": "graph-ml",
}
"""The Hub's task of other models, by the kind of the model."""

_TASKS: Mapping[str, str | None] = {
    "summarization": "summarization",
    "text_to_text": "text-generation",
    "denoising": None,
}
"""The Hub's task of encoder–decoders that do not translate, by the kind of the task of the run."""

_METRICS = (
    ("bleu", "bleu"),
    ("chrf", "chrf"),
    ("ter", "ter"),
    ("rouge", "rouge"),
    ("perplexity", "perplexity"),
    ("accuracy", "accuracy"),
    ("matthews", "matthews_correlation"),
    ("pearson", "pearsonr"),
    ("spearman", "spearmanr"),
    ("mean squared error", "mse"),
    ("mean absolute error", "mae"),
    ("em", "exact_match"),
    ("exact match", "exact_match"),
    ("precision", "precision"),
    ("recall", "recall"),
    ("f1", "f1"),
)
"""Names of metrics with the identifiers of https://hf.co/metrics. The first one that occurs in a name applies."""


def metadata(
    meta: Meta, config: Mapping[str, Any], kind: ModelKind, task: str | None, languages: CardLanguages
) -> list[str]:
    """Return the lines of the YAML block with its delimiters. Keys without a known value are left out."""
    pipeline = pipeline_tag(config, kind, task)
    scores = [score for score in meta.scores if math.isfinite(score.value)]
    metrics = list(dict.fromkeys(metric_identifier(score.metric) for score in scores))
    content: dict[str, Any] = {
        **_languages(languages),
        **_licence(meta.licence),
        "library_name": LIBRARY,
        "pipeline_tag": pipeline,
        "tags": _tags(config, kind),
        "datasets": _datasets(meta, config),
        "metrics": metrics,
    }
    if scores:
        results = list(_results(scores, pipeline or _slug(task or kind.name), config))
        content["model-index"] = [{"name": _name(config, kind), "results": results}]
    known = {key: value for key, value in content.items() if value}
    # unlike `dump_yaml`, this quotes the code of Norwegian, which is a truth value for the Hub's parser (YAML 1.1)
    text = yaml.safe_dump(known, sort_keys=False, allow_unicode=True, width=100)
    return ["---", *without_folders(text, config).splitlines(), "---"]


def pipeline_tag(config: Mapping[str, Any], kind: ModelKind, task: str | None) -> str | None:
    """Return the Hub's name of what the model does, or None if the Hub has none, as for parsers."""
    model, text = (_section(config, name) for name in ("model", "text"))
    if kind.name == "encoder_only":
        return _HEADS.get(str(_section(model, "head").get("kind")))
    if kind.name == "encoder_decoder" and text.get("vectors") is not None:
        return "image-to-text"
    if kind.name == "encoder_decoder" and task is not None and task in _TASKS:
        return _TASKS[task]
    return _KINDS.get(kind.name)


def metric_identifier(name: str) -> str:
    """Return the identifier of a metric for the Hub, such as `chrf` for chrF2; an unknown name becomes a slug."""
    words = name.lower()
    found = (identifier for prefix, identifier in _METRICS if re.search(rf"\b{prefix}", words))
    return next(found, _slug(name).replace("-", "_"))


def _languages(languages: CardLanguages) -> dict[str, list[str]]:
    """Return the ISO 639 codes, which the Hub requires, and tags with a script or region under a key of their own."""
    base = dict.fromkeys(base_language(code).lower() for code in languages.codes)
    tagged = [code for code in languages.codes if code.lower() != base_language(code).lower()]
    return {
        "language": [code for code in base if re.fullmatch("[a-z]{2,3}", code)],
        "language_bcp47": tagged,
    }


def _licence(licence: str | None) -> dict[str, str]:
    """Return the licence by the Hub's identifier, or as `other` with its name. An unstated licence is left out."""
    if not licence:
        return {}
    identifier = re.sub(r"\s+", "-", licence.strip().lower())
    if identifier in _LICENCES:
        return {"license": identifier}
    return {"license": "other", "license_name": _slug(licence)}


def _tags(config: Mapping[str, Any], kind: ModelKind) -> list[str]:
    model = _section(config, "model")
    parts = [_section(model, name).get("kind") for name in ("encoder", "decoder")]
    return list(dict.fromkeys([LIBRARY, _slug(kind.title), *(str(part) for part in parts if part)]))


def _datasets(meta: Meta, config: Mapping[str, Any]) -> list[str]:
    """Return names of the training data in the form that the Hub requires of identifiers."""
    names = (without_folders(part, config) for name in meta.data for part in re.split(r", | \+ ", name))
    return list(dict.fromkeys(filter(None, map(_identifier, names))))


def _results(scores: Sequence[RecordedScore], task: str, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the scores by the data that they were measured on."""
    for data in dict.fromkeys(score.data for score in scores):
        name = without_folders(data, config) or UNKNOWN
        metrics = [
            {
                "type": metric_identifier(score.metric),
                "name": score.metric,
                "value": round(score.value, 4),
                **({"args": {"signature": score.signature}} if score.signature else {}),
            }
            for score in scores
            if score.data == data
        ]
        dataset = {"type": _identifier(name) or "unknown", "name": name}
        yield {"task": {"type": task}, "dataset": dataset, "metrics": metrics}


def _name(config: Mapping[str, Any], kind: ModelKind) -> str:
    """Return the name of the run's folder, or what the model is."""
    out = config.get("out")
    return (PurePath(out).name if isinstance(out, str) else "") or _slug(kind.title)


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name)
    return section if isinstance(section, Mapping) else {}


def _identifier(name: str) -> str:
    """Return a name with the characters of an identifier of the Hub alone, and without folders."""
    return re.sub(r"[^\w.-]+", "-", PurePath(name).name, flags=re.ASCII).strip("-.")[:96]


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")
