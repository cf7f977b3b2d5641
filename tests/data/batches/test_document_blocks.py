"""Preparing plain text: every token of every document is predicted exactly once, and no row mixes two documents."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.batches.batch import collate_text, document_blocks
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.cleaning import chunks
from dragoman.data.cleaning.config import TextCleaningConfig
from dragoman.data.corpora.corpus import TextCorpusConfig
from dragoman.data.preparation import tokenising
from dragoman.data.preparation.prepare import prepare_texts
from dragoman.text.symbols import BOS, EOS, PAD
from dragoman.text.tokenizers import Tokenizers
from dragoman.text.vocabularies.character import CharacterConfig

LETTERS = "ab c\n\td"
TOKENIZER = CharacterConfig(min_frequency=1).learn([LETTERS])
CORPORA = st.lists(st.lists(st.text(alphabet=LETTERS, max_size=40), min_size=1, max_size=8), min_size=1, max_size=2)


@settings(max_examples=12, deadline=None)
@given(
    corpora=CORPORA,
    block=st.integers(1, 12),
    longest=st.integers(1, 30),
    size=st.integers(1, 5),
    tokens=st.integers(1, 40),
    data=st.data(),
)
def test_every_token_is_predicted_once(
    corpora: list[list[str]], block: int, longest: int, size: int, tokens: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as name:
        patch.setattr("dragoman.data.corpora.documents.LONGEST", longest)
        patch.setattr(chunks, "PAIRS", size)
        patch.setattr(tokenising, "BYTES_PER_CALL", 2 * longest)
        configs = []
        for number, documents in enumerate(corpora):
            path = Path(name) / f"{number}.jsonl"
            path.write_text("".join(f'{{"text": {json.dumps(text)}}}\n' for text in documents))
            configs.append(TextCorpusConfig(jsonl=path))
        shared = Tokenizers(TOKENIZER, TOKENIZER)
        prepared = prepare_texts(
            configs, TextCleaningConfig(enabled=False), shared, Path(name) / "cache", block, workers=0
        )
        dataset = prepared.dataset
        expected = [
            each
            for documents in corpora
            for text in documents
            for each in document_blocks(TOKENIZER.encode(text), block)
        ]
        rows = [dataset[row][0].tolist() for row in range(len(dataset))]
        assert rows == expected
        assert dataset.lengths.tolist() == [[len(ids) - 1] for ids in expected]
        assert dataset.lengths.max() <= block
        counts = np.bincount([label for ids in expected for label in ids[1:]], minlength=TOKENIZER.size)
        assert dataset.target_counts(TOKENIZER.size).tolist() == counts.tolist()
        plan = plan_epoch(dataset.lengths, BatchConfig(tokens=tokens), 1, 0, prepared.parts, special=dataset.special)
        predicted = np.zeros(TOKENIZER.size, np.int64)
        for chosen in plan.batches:
            (ids,) = dataset.take(chosen)
            batch = collate_text(ids, chosen.tolist())
            assert len(chosen) == 1 or batch.labels.numel() <= tokens
            parts = batch.split(data.draw(st.integers(1, 3)))
            assert sum(part.target_tokens for part in parts) == batch.target_tokens
            for part in parts:
                for place, row in enumerate(part.rows):
                    keep = part.target_mask[place]
                    assert [int(part.inputs[place, 0]), *part.labels[place][keep].tolist()] == rows[row]
                    assert part.inputs[place][keep].tolist() == rows[row][:-1]
                    assert (part.inputs[place][~keep] == PAD).all()
                    assert (part.labels[place][~keep] == PAD).all()
                assert torch.equal(part.select_targets(part.labels), part.labels[part.target_mask])
                predicted += np.bincount(part.select_targets(part.labels), minlength=TOKENIZER.size)
        assert predicted.tolist() == counts.tolist()


def test_a_block_starts_with_the_last_token_of_the_previous_one() -> None:
    assert document_blocks([4, 5, 6, 7], 2) == [[BOS, 4, 5], [5, 6, 7], [7, EOS]]
    assert document_blocks([4, 5, 6], 4) == [[BOS, 4, 5, 6, EOS]]
    assert document_blocks([], 3) == [[BOS, EOS]]
