"""dragoman: train machine-translation models on sentence pairs, and translate with them.

Each command of the command line has a function of the same purpose; docs/reference/python.md introduces them in a
notebook.
"""

from dragoman.base.early_exit import exit_on_interrupt

exit_on_interrupt()  # before the other imports

from importlib import import_module  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from dragoman.base.machine.startup import limit_thread_spinning, tolerate_missing_temporary_folder  # noqa: E402

if TYPE_CHECKING:
    from dragoman.addons.bulk.translate_shards import translate_shards
    from dragoman.addons.documents.document import translate_document
    from dragoman.addons.lecture.draw_positions import draw_positions
    from dragoman.addons.lecture.scene_corpus import write_scenes
    from dragoman.addons.serving.access.keys import Keys
    from dragoman.addons.serving.client import AsyncClient, Client
    from dragoman.addons.serving.server import serve
    from dragoman.addons.workbench.server import open_workbench
    from dragoman.base.errors import DragomanError
    from dragoman.base.log import quietly
    from dragoman.checkpoint.average import average
    from dragoman.decode.decoding import Sampling
    from dragoman.evaluation.compare import compare
    from dragoman.evaluation.denoising import evaluate_denoising
    from dragoman.evaluation.evaluate import evaluate
    from dragoman.evaluation.evaluate_alignments import evaluate_alignments
    from dragoman.evaluation.evaluate_labels import evaluate_labels
    from dragoman.evaluation.judgement_sheet import write_sheet
    from dragoman.evaluation.judgements import evaluate_judgements
    from dragoman.evaluation.minimal_pairs import evaluate_pairs
    from dragoman.evaluation.score import score
    from dragoman.evaluation.text_to_text import evaluate_outputs
    from dragoman.evaluation.tune import tune
    from dragoman.exchange.formats import export, import_model
    from dragoman.inference.generation.language_model import LanguageModel
    from dragoman.inference.load import load
    from dragoman.inference.prediction.nodes import NodePredictor
    from dragoman.inference.prediction.predict import predict
    from dragoman.inference.prediction.predictor import Predictor
    from dragoman.inference.translation.files.translate_file import translate_file
    from dragoman.inference.translation.translator import Translator
    from dragoman.inspection.ablation import ablate_heads
    from dragoman.inspection.alignments import compare_alignments
    from dragoman.inspection.checkpoints import follow_checkpoints
    from dragoman.inspection.importance import head_importance
    from dragoman.inspection.inspect import inspect
    from dragoman.inspection.lens import decoder_lens
    from dragoman.inspection.next_tokens import continue_prefix, next_tokens
    from dragoman.inspection.relevance import token_relevance
    from dragoman.inspection.rollout import attention_rollout
    from dragoman.inspection.searches import compare_searches
    from dragoman.statistical.alignment.add_shortlist import shortlist
    from dragoman.statistical.alignment.align import align
    from dragoman.statistical.alignment.dictionary import lexicon
    from dragoman.statistical.alignment.word_aligner import WordAligner
    from dragoman.tasks.augmentation.backtranslate import backtranslate
    from dragoman.tasks.augmentation.distill import distill
    from dragoman.tasks.corpora.check import check_data
    from dragoman.tasks.corpora.compare import compare_data
    from dragoman.tasks.corpora.get import get_data
    from dragoman.tasks.corpora.split import split_data
    from dragoman.tasks.description import describe
    from dragoman.tasks.recipes import recipes
    from dragoman.tasks.train import settings, train
    from dragoman.tasks.translation.precision_cost import measure_precision_cost

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
    "compare",
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
    "evaluate_judgements",
    "evaluate_labels",
    "evaluate_outputs",
    "evaluate_pairs",
    "export",
    "follow_checkpoints",
    "get_data",
    "head_importance",
    "import_model",
    "inspect",
    "lexicon",
    "load",
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
    "split_data",
    "token_relevance",
    "train",
    "translate_document",
    "translate_file",
    "translate_shards",
    "tune",
    "write_scenes",
    "write_sheet",
]

_MODULES = {
    "AsyncClient": "addons.serving.client",
    "Client": "addons.serving.client",
    "DragomanError": "base.errors",
    "Keys": "addons.serving.access.keys",
    "LanguageModel": "inference.generation.language_model",
    "NodePredictor": "inference.prediction.nodes",
    "Predictor": "inference.prediction.predictor",
    "Sampling": "decode.decoding",
    "Translator": "inference.translation.translator",
    "WordAligner": "statistical.alignment.word_aligner",
    "ablate_heads": "inspection.ablation",
    "align": "statistical.alignment.align",
    "attention_rollout": "inspection.rollout",
    "average": "checkpoint.average",
    "backtranslate": "tasks.augmentation.backtranslate",
    "check_data": "tasks.corpora.check",
    "compare": "evaluation.compare",
    "compare_alignments": "inspection.alignments",
    "compare_data": "tasks.corpora.compare",
    "compare_searches": "inspection.searches",
    "continue_prefix": "inspection.next_tokens",
    "decoder_lens": "inspection.lens",
    "describe": "tasks.description",
    "distill": "tasks.augmentation.distill",
    "draw_positions": "addons.lecture.draw_positions",
    "evaluate": "evaluation.evaluate",
    "evaluate_alignments": "evaluation.evaluate_alignments",
    "evaluate_denoising": "evaluation.denoising",
    "evaluate_judgements": "evaluation.judgements",
    "evaluate_labels": "evaluation.evaluate_labels",
    "evaluate_outputs": "evaluation.text_to_text",
    "evaluate_pairs": "evaluation.minimal_pairs",
    "export": "exchange.formats",
    "follow_checkpoints": "inspection.checkpoints",
    "get_data": "tasks.corpora.get",
    "head_importance": "inspection.importance",
    "import_model": "exchange.formats",
    "inspect": "inspection.inspect",
    "lexicon": "statistical.alignment.dictionary",
    "load": "inference.load",
    "measure_precision_cost": "tasks.translation.precision_cost",
    "next_tokens": "inspection.next_tokens",
    "open_workbench": "addons.workbench.server",
    "predict": "inference.prediction.predict",
    "quietly": "base.log",
    "recipes": "tasks.recipes",
    "score": "evaluation.score",
    "serve": "addons.serving.server",
    "settings": "tasks.train",
    "shortlist": "statistical.alignment.add_shortlist",
    "split_data": "tasks.corpora.split",
    "token_relevance": "inspection.relevance",
    "train": "tasks.train",
    "translate_document": "addons.documents.document",
    "translate_file": "inference.translation.files.translate_file",
    "translate_shards": "addons.bulk.translate_shards",
    "tune": "evaluation.tune",
    "write_scenes": "addons.lecture.scene_corpus",
    "write_sheet": "evaluation.judgement_sheet",
}

# The folders of the add-ons may be deleted. Without a folder, the names of its functions are missing.
for _name, _module in tuple(_MODULES.items()):
    if (
        _module.startswith("addons.")
        and not Path(__file__).with_name("addons").joinpath(_module.split(".")[1]).is_dir()
    ):
        del _MODULES[_name]
        __all__.remove(_name)

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
