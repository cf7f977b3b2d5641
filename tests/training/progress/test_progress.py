"""The progress of a run: the best validation, also after a round trip through JSON."""

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from dragoman.metrics.registry import METRICS
from dragoman.training.progress.horizon import Horizon
from dragoman.training.progress.progress import RunProgress
from dragoman.training.validation import Validation

JUDGED = st.lists(st.tuples(st.sampled_from([0.0, 12.5, 30.0]), st.sampled_from([1.0, 2.0, 3.0])), min_size=1)


def progress() -> RunProgress:
    return RunProgress(Horizon(0, 0.0, 100))


def validation(bleu: float, loss: float) -> Validation:
    values = {"loss": loss, "perplexity": math.exp(loss), "bleu": bleu}
    return Validation(tuple(METRICS[key].score_of(value) for key, value in values.items()), 0.0)


def test_while_bleu_is_zero_a_lower_loss_is_better_and_patience_waits_for_neither() -> None:
    run = progress()
    for step, loss in enumerate((9.0, 7.0, 6.0, 6.5), 1):
        run.step = step
        run.add_score(validation(0.0, loss).rank("bleu"))
    assert run.best_step == 3
    assert run.waited == 1


def test_equal_losses_are_decided_by_bleu() -> None:
    run = progress()
    for step, bleu in enumerate((3.0, 5.0, 4.0), 1):
        run.step = step
        run.add_score(validation(bleu, 2.0).rank("loss"))
    assert run.best_step == 2


@given(JUDGED)
def test_the_best_step_is_the_first_of_the_ranking(judged: list[tuple[float, float]]) -> None:
    run = progress()
    for step, (bleu, loss) in enumerate(judged, 1):
        run.step = step
        run.add_score(validation(bleu, loss).rank("bleu"))
    again = RunProgress.from_json(json.loads(json.dumps(run.to_json(), sort_keys=True)))
    assert again == run
    ranking = again.ranked()
    assert ranking[0] == run.best_step
    assert sorted(ranking) == list(range(1, len(judged) + 1))
    order = [(-judged[step - 1][0], judged[step - 1][1], step) for step in ranking]
    assert order == sorted(order)
