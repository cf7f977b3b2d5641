"""How many steps a search of CTranslate2 gets: few too short, few much too long, whatever the language pair."""

import numpy as np
import pytest

from dragoman.translation.engines.ctranslate2.usual_steps import UsualSteps


@pytest.mark.parametrize("ratio", [0.6, 1.0, 2.5])
def test_a_small_share_is_too_short(ratio: float) -> None:
    random = np.random.default_rng(1)
    usual, too_short, given, needed = UsualSteps(), 0, 0, 0
    for number in range(6000):
        source = int(random.integers(5, 40))
        length = max(1, round(random.normal(ratio * source, 3.0)))
        needs, gets = length + 3, usual.of(source)
        if needs <= gets:
            usual.decided(source, length)
        else:
            usual.undecided()
        if number >= 3000:
            too_short, given, needed = too_short + (needs > gets), given + gets, needed + needs
    assert 0.04 < too_short / 3000 < 0.16
    assert given < 1.35 * needed


def test_there_is_always_a_step() -> None:
    usual = UsualSteps()
    for _ in range(10_000):
        usual.decided(10, 1)
    assert usual.of(1) == 1
