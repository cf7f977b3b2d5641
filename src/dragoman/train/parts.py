"""`Parts`: everything that the loop of a run works with."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from dragoman.base.errors import ResourceError
from dragoman.base.memory import is_out_of_memory
from dragoman.base.settings import dump_settings
from dragoman.checkpoint.folder import write_model_folder
from dragoman.checkpoint.meta import Meta, Score
from dragoman.checkpoint.store import CheckpointStore, TrainingSnapshot
from dragoman.data.preparation.prepare import Prepared
from dragoman.models.build import Seq2Seq
from dragoman.train.average import ParameterAverage
from dragoman.train.compilation import uncompiled
from dragoman.train.config import RunConfig
from dragoman.train.decisions import Decisions
from dragoman.train.engine import Engine
from dragoman.train.profiling.utilisation import Utilisation, flops_per_target_token, measure_rate
from dragoman.train.progress import Progress
from dragoman.train.ranks.interface import Ranks
from dragoman.train.ranks.parallel import Alone
from dragoman.train.validation.sets import ValidationSets
from dragoman.train.validation.validator import Validation

EMBEDDED = "embedded"
"""The journal's name for the shares of the vocabularies that began with vectors from a file."""


@dataclass(frozen=True)
class Parts:
    """Everything that the loop works with.

    snapshot: where to go on from, or None; limits_changed: whether it was made under other limits; valid: fingerprint
    of the validation sets; before: what the model that the run starts from was trained on.
    """

    config: RunConfig
    prepared: Prepared
    model: Seq2Seq
    engine: Engine
    average: ParameterAverage | None
    validator: ValidationSets
    store: CheckpointStore
    decisions: Decisions
    snapshot: TrainingSnapshot | None
    limits_changed: bool
    ranks: Ranks
    parallel: Alone
    valid: str
    before: Meta

    def validate(self, step: int) -> Validation:
        """Judge the model that `parallel` shows. Raises ResourceError where translating does not fit the memory."""
        try:
            with uncompiled(self.config.train.compile):
                return self.validator.run(self.engine)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ResourceError(
                f"not enough memory to validate at step {step}: leave the longest pairs out of "
                f"{self.config.data.validation}, or lower train.validation_beam"
            ) from None

    def write_model(
        self,
        folder: Path,
        parameters: dict[str, Tensor],
        step: int,
        validation: Validation | None,
        averaged_steps: tuple[int, ...] = (),
    ) -> None:
        """Write parameters as a model folder of this run; validation: what they reached, if they were judged.

        Only the first rank writes; the others wait until it has.
        """
        if not self.ranks.first:
            self.ranks.wait()
            return
        data = self.config.data
        meta = Meta(
            step=step,
            averaged_steps=averaged_steps,
            source_language=data.source_language,
            target_language=data.target_language,
            target_languages=tuple(dict.fromkeys([*self.before.target_languages, *data.languages])),
            tags=tuple(dict.fromkeys([*self.before.tags, *(tag for corpus in data.corpora for tag in corpus.tags)])),
            licence=data.licence,
            scores=() if validation is None else _scores(validation, data.validation),
            data=dict(zip(map(str, data.corpora), self.prepared.fingerprints, strict=True)),
            embeddings=self.decisions.made(EMBEDDED, 0) or {},
        )
        write_model_folder(folder, parameters, dump_settings(self.config), self.prepared.tokenizers, meta)
        self.ranks.wait()

    def utilisation(self) -> Utilisation:
        """What an update's products cost, and what this device gives, measured now."""
        tokenizers, engine = self.prepared.tokenizers, self.engine
        flops = flops_per_target_token(
            self.config.model,
            tokenizers.source.size,
            tokenizers.target.size,
            self.prepared.dataset.lengths,
            vectors=tokenizers.reads_vectors,
            passes=1 if self.config.train.objective.r_drop is None else 2,
        )
        return Utilisation(flops, measure_rate(engine.device, engine.precision), self.ranks.size)

    def prune(self, progress: Progress) -> None:
        """Remove checkpoints that neither averaging nor a later comparison needs."""
        if not self.ranks.first:
            return
        config = self.config.train
        paths = self.store.checkpoints()
        keep = set(paths[-max(1, config.average.count) :])
        best = config.average.count if config.average.of == "best" else 1
        keep |= {self.store.checkpoint_folder(step) for step in progress.ranked()[: max(1, best)]}
        self.store.prune(keep)


def _scores(validation: Validation, data: str) -> tuple[Score, ...]:
    bleu = validation.bleu
    own = (
        Score(metric=bleu.name, value=bleu.value, signature=bleu.signature, data=data),
        Score(metric="perplexity", value=validation.perplexity, signature="per token", data=data),
    )
    return own + tuple(score for name, one in validation.sets.items() for score in _scores(one, name))
