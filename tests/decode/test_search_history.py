"""The tokens of hypotheses, reconstructed from links."""

import torch

from dragoman.decode.beam.hypotheses import History


def test_links_give_the_written_tokens() -> None:
    """Random reorderings, against sequences that are copied in each step."""
    generator = torch.Generator().manual_seed(1)
    history, plain, seen = History(), torch.empty(3, 0, dtype=torch.int64), [((0, 1), ())]
    for step in range(1, 9):
        rows = int(torch.randint(1, 7, (), generator=generator))
        parents = torch.randint(0, len(plain), (rows,), generator=generator)
        tokens = torch.randint(4, 99, (rows,), generator=generator)
        history.extend(parents, tokens)
        plain = torch.cat((plain[parents], tokens[:, None]), 1)
        seen += [((step, row), tuple(plain[row].tolist())) for row in range(rows)]
    assert history.sequences([end for end, _ in seen]) == [written for _, written in seen]


def test_nothing_written_is_an_empty_sequence() -> None:
    assert History().sequences([]) == []
    assert History().sequences([(0, 2)]) == [()]
