"""Training and validation examples of different numbers of texts."""

import pytest

from dragoman.base.errors import ConfigError
from dragoman.data.labelled.examples import LabelledText
from dragoman.models.heads.texts import ClassificationHeadConfig
from dragoman.tasks.labelled.jobs import number_of_texts

SINGLE, PAIR = LabelledText(("a dog",), "A"), LabelledText(("a dog", "a cat"), "A")


def test_the_validation_set_has_as_many_texts_as_the_training_set() -> None:
    head = ClassificationHeadConfig()
    assert number_of_texts(head, [SINGLE], [SINGLE]) == 1 and number_of_texts(head, [PAIR], [PAIR]) == 2
    for train, valid, message in ((SINGLE, PAIR, "data.valid have 2 .* data.train have 1"), (PAIR, SINGLE, "have 1")):
        with pytest.raises(ConfigError, match=message):
            number_of_texts(head, [train], [train, valid])
