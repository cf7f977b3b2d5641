"""dragoman: train machine-translation models on sentence pairs, and translate with them.

Each command of the command line has a function of the same purpose; docs/reference/python.md introduces them in a
notebook.
"""

from dragoman.base.early_exit import exit_on_interrupt

exit_on_interrupt()  # before the other imports

from importlib import import_module  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from dragoman.base.machine.startup import limit_thread_spinning, tolerate_missing_temporary_folder  # noqa: E402

if TYPE_CHECKING:
    from dragoman.alignment.align import align
    from dragoman.alignment.dictionary import lexicon
    from dragoman.alignment.shortlists.add_shortlist import shortlist
    from dragoman.alignment.word_aligner import WordAligner
    from dragoman.analysis.ablation import ablate_heads
    from dragoman.analysis.alignments import compare_alignments
    from dragoman.analysis.checkpoints import follow_checkpoints
    from dragoman.analysis.importance import head_importance
    from dragoman.analysis.lens import decoder_lens
    from dragoman.analysis.next_tokens import continue_prefix, next_tokens
    from dragoman.analysis.relevance import token_relevance
    from dragoman.analysis.rollout import attention_rollout
    from dragoman.analysis.searches import compare_searches
    from dragoman.augmentation.backtranslate import backtranslate
    from dragoman.augmentation.distill import distill
    from dragoman.base.errors import DragomanError
    from dragoman.base.log import quietly
    from dragoman.checkpoint.average import average
    from dragoman.client import AsyncClient, Client
    from dragoman.documents.document import translate_document
    from dragoman.evaluation.denoising import evaluate_denoising
    from dragoman.evaluation.evaluate import evaluate
    from dragoman.evaluation.evaluate_alignments import evaluate_alignments
    from dragoman.evaluation.evaluate_labels import evaluate_labels
    from dragoman.evaluation.minimal_pairs import evaluate_pairs
    from dragoman.evaluation.score import score
    from dragoman.evaluation.text_to_text import evaluate_outputs
    from dragoman.evaluation.tune import tune
    from dragoman.exchange.formats import export, import_model
    from dragoman.generation.language_model import LanguageModel
    from dragoman.lecture.draw_positions import draw_positions
    from dragoman.lecture.scene_corpus import write_scenes
    from dragoman.prediction.nodes import NodePredictor
    from dragoman.prediction.predict import predict
    from dragoman.prediction.predictor import Predictor
    from dragoman.serving.access.keys import Keys
    from dragoman.serving.server import serve
    from dragoman.tasks.check import check_data
    from dragoman.tasks.compare import compare_data
    from dragoman.tasks.description import describe
    from dragoman.tasks.recipes import recipes
    from dragoman.tasks.train import settings, train
    from dragoman.tasks.translation.precision_cost import measure_precision_cost
    from dragoman.translation.bulk.translate_shards import translate_shards
    from dragoman.translation.files.translate_file import translate_file
    from dragoman.translation.request import Sampling
    from dragoman.translation.translator import Translator
    from dragoman.workbench.server import open_workbench

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Client",
    "DragomanError",
    "Keys",
    "LanguageModel",
    "NodePredictor",
    "Predictor",
    "Sampling",
    "Translator",
    "WordAligner",
    "__version__",
    "ablate_heads",
    "align",
    "attention_rollout",
    "average",
    "backtranslate",
    "check_data",
    "compare_alignments",
    "compare_data",
    "compare_searches",
    "continue_prefix",
    "decoder_lens",
    "describe",
    "distill",
    "draw_positions",
    "evaluate",
    "evaluate_alignments",
    "evaluate_denoising",
    "evaluate_labels",
    "evaluate_outputs",
    "evaluate_pairs",
    "export",
    "follow_checkpoints",
    "head_importance",
    "import_model",
    "lexicon",
    "measure_precision_cost",
    "next_tokens",
    "open_workbench",
    "predict",
    "quietly",
    "recipes",
    "score",
    "serve",
    "settings",
    "shortlist",
    "token_relevance",
    "train",
    "translate_document",
    "translate_file",
    "translate_shards",
    "tune",
    "write_scenes",
]

_MODULES = {
    "AsyncClient": "client",
    "Client": "client",
    "DragomanError": "base.errors",
    "Keys": "serving.access.keys",
    "LanguageModel": "generation.language_model",
    "NodePredictor": "prediction.nodes",
    "Predictor": "prediction.predictor",
    "Sampling": "translation.request",
    "Translator": "translation.translator",
    "WordAligner": "alignment.word_aligner",
    "ablate_heads": "analysis.ablation",
    "align": "alignment.align",
    "attention_rollout": "analysis.rollout",
    "average": "checkpoint.average",
    "backtranslate": "augmentation.backtranslate",
    "check_data": "tasks.check",
    "compare_alignments": "analysis.alignments",
    "compare_data": "tasks.compare",
    "compare_searches": "analysis.searches",
    "continue_prefix": "analysis.next_tokens",
    "decoder_lens": "analysis.lens",
    "describe": "tasks.description",
    "distill": "augmentation.distill",
    "draw_positions": "lecture.draw_positions",
    "evaluate": "evaluation.evaluate",
    "evaluate_alignments": "evaluation.evaluate_alignments",
    "evaluate_denoising": "evaluation.denoising",
    "evaluate_labels": "evaluation.evaluate_labels",
    "evaluate_outputs": "evaluation.text_to_text",
    "evaluate_pairs": "evaluation.minimal_pairs",
    "export": "exchange.formats",
    "follow_checkpoints": "analysis.checkpoints",
    "head_importance": "analysis.importance",
    "import_model": "exchange.formats",
    "lexicon": "alignment.dictionary",
    "measure_precision_cost": "tasks.translation.precision_cost",
    "next_tokens": "analysis.next_tokens",
    "open_workbench": "workbench.server",
    "predict": "prediction.predict",
    "quietly": "base.log",
    "recipes": "tasks.recipes",
    "score": "evaluation.score",
    "serve": "serving.server",
    "settings": "tasks.train",
    "shortlist": "alignment.shortlists.add_shortlist",
    "token_relevance": "analysis.relevance",
    "train": "tasks.train",
    "translate_document": "documents.document",
    "translate_file": "translation.files.translate_file",
    "translate_shards": "translation.bulk.translate_shards",
    "tune": "evaluation.tune",
    "write_scenes": "lecture.scene_corpus",
}

limit_thread_spinning()
tolerate_missing_temporary_folder()


def __getattr__(name: str) -> Any:
    # Importing torch takes a second; `dragoman --help` must not wait for it.
    if name not in _MODULES:
        raise AttributeError(f"module 'dragoman' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f"dragoman.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
