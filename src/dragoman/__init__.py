"""dragoman: learn to translate from pairs of sentences, and translate.

What the verbs of the command line do, these functions do: docs/python.md shows them in a notebook's order.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.base.machine.waiting import wait_briefly

if TYPE_CHECKING:
    from dragoman.backtranslation.backtranslate import backtranslate
    from dragoman.base.errors import DragomanError
    from dragoman.base.log import quietly
    from dragoman.bulk.translate_shards import translate_shards
    from dragoman.checkpoint.average import average
    from dragoman.client.client import AsyncClient, Client
    from dragoman.data.preparation.check import check_data
    from dragoman.distillation.distill import distill
    from dragoman.documents.document import translate_document
    from dragoman.exchange.exporting import export
    from dragoman.exchange.importing import import_model
    from dragoman.inference.evaluation import evaluate
    from dragoman.inference.scoring import score
    from dragoman.inference.translate_file import translate_file
    from dragoman.inference.tuning import tune
    from dragoman.inspect.pictures.positions import draw_positions
    from dragoman.language_model import LanguageModel
    from dragoman.serving.access.keys import Keys
    from dragoman.serving.server import serve
    from dragoman.tasks.description import describe
    from dragoman.tasks.settings import settings
    from dragoman.tasks.train import train
    from dragoman.translation.request import Sampling
    from dragoman.translator import Translator

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "Client",
    "DragomanError",
    "Keys",
    "LanguageModel",
    "Sampling",
    "Translator",
    "__version__",
    "average",
    "backtranslate",
    "check_data",
    "describe",
    "distill",
    "draw_positions",
    "evaluate",
    "export",
    "import_model",
    "quietly",
    "score",
    "serve",
    "settings",
    "train",
    "translate_document",
    "translate_file",
    "translate_shards",
    "tune",
]

_HOMES = {
    "AsyncClient": "client.client",
    "Client": "client.client",
    "DragomanError": "base.errors",
    "Keys": "serving.access.keys",
    "LanguageModel": "language_model",
    "Sampling": "translation.request",
    "Translator": "translator",
    "average": "checkpoint.average",
    "backtranslate": "backtranslation.backtranslate",
    "check_data": "data.preparation.check",
    "describe": "tasks.description",
    "distill": "distillation.distill",
    "draw_positions": "inspect.pictures.positions",
    "evaluate": "inference.evaluation",
    "export": "exchange.exporting",
    "import_model": "exchange.importing",
    "quietly": "base.log",
    "score": "inference.scoring",
    "serve": "serving.server",
    "settings": "tasks.settings",
    "train": "tasks.train",
    "translate_document": "documents.document",
    "translate_file": "inference.translate_file",
    "translate_shards": "bulk.translate_shards",
    "tune": "inference.tuning",
}

wait_briefly()


def __getattr__(name: str) -> Any:
    # torch takes a second to import: `dragoman --help` must not pay for it
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f"dragoman.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
