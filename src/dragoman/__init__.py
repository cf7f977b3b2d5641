"""dragoman: learn to translate from pairs of sentences, and translate."""

from typing import TYPE_CHECKING, Any

from dragoman.base.machine.waiting import wait_briefly

if TYPE_CHECKING:
    from dragoman.language_model import LanguageModel
    from dragoman.translator import Translator

__version__ = "0.1.0"
__all__ = ["LanguageModel", "Translator", "__version__"]

wait_briefly()


def __getattr__(name: str) -> Any:
    # torch takes a second to import: `dragoman --help` must not pay for it
    if name == "Translator":
        from dragoman.translator import Translator

        return Translator
    if name == "LanguageModel":
        from dragoman.language_model import LanguageModel

        return LanguageModel
    raise AttributeError(f"module 'dragoman' has no attribute '{name}'")
