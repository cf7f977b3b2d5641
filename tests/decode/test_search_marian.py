"""Our search drives a random Marian of Hugging Face to the outputs and scores of its own generate()."""

import pytest
import torch
from given_logits import GivenLogits
from searching import searched
from torch import Tensor

from dragoman.data.batches.batch import pad
from dragoman.decode.rules.length_penalty import MeanLogProbability, NoPenalty
from dragoman.decode.search import SearchConfig
from dragoman.models.interface import Memory, State
from dragoman.text.symbols import BOS, EOS, PAD, UNK

transformers = pytest.importorskip("transformers")

SIZE, LONGEST = 40, 16
SOURCES = [[5, 9, 4, EOS], [7, EOS], [12, 4, 20, 11, 6, 5, EOS], [9, 31, 30, EOS]]


class Marian:
    """Hugging Face's decoder with our interface; its cache is the tokens so far, which it reads again in every step."""

    def __init__(self, model: "transformers.MarianMTModel") -> None:
        self.model = model

    def start(self, memory: Memory, attention: bool = False) -> State:
        return State(memory=(memory.states, memory.mask), cache=torch.zeros(len(memory.mask), 0, dtype=torch.int64))

    def step(self, tokens: Tensor, state: State) -> tuple[GivenLogits, State]:
        read = torch.cat([state.cache, tokens], 1)
        hidden = self.model.get_decoder()(
            input_ids=read,
            encoder_hidden_states=state.memory[0].repeat_interleave(state.beam_size, 0),
            encoder_attention_mask=state.memory[1].repeat_interleave(state.beam_size, 0).long(),
            use_cache=False,
        ).last_hidden_state[:, state.position :]
        after = State(state.memory, read, state.position + tokens.shape[1], state.beam_size)
        return GivenLogits(self.model.lm_head(hidden) + self.model.final_logits_bias), after


# Seeds and biases of the end symbol with which outputs end, at many different lengths: generate() lets unfinished
# hypotheses compete at the maximum length, where ours come last.
@pytest.fixture(scope="module", params=[(29, 1.5), (16, 2.5)])
def model(request: pytest.FixtureRequest) -> "transformers.MarianMTModel":
    seed, end = request.param
    torch.manual_seed(seed)
    config = transformers.MarianConfig(
        vocab_size=SIZE,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        init_std=0.3,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        tie_word_embeddings=False,
        max_position_embeddings=64,
    )
    model = transformers.MarianMTModel(config).eval()
    model.final_logits_bias[0, EOS] = end
    model.model.decoder.embed_positions.weight.data.mul_(3)  # otherwise random models repeat one token
    return model


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize(("penalty", "power"), [(MeanLogProbability(), 1.0), (NoPenalty(), 0.0)], ids=["mean", "none"])
@torch.no_grad()
def test_equals_generate(
    model: "transformers.MarianMTModel", beam: int, penalty: MeanLogProbability | NoPenalty, power: float
) -> None:
    tokens, keep = pad(SOURCES)
    states = model.get_encoder()(input_ids=tokens, attention_mask=keep.long()).last_hidden_state
    config = SearchConfig(beam=beam, nbest=beam, length_penalty=penalty, length_factor=0, length_margin=LONGEST)
    ours = searched(Marian(model), Memory(states, keep), config)
    beams = {"length_penalty": power, "early_stopping": "never"} if beam > 1 else {}
    theirs = model.generate(
        input_ids=tokens,
        attention_mask=keep.long(),
        num_beams=beam,
        num_return_sequences=beam,
        max_new_tokens=LONGEST,
        suppress_tokens=[PAD, BOS, UNK],
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
        **beams,
    )
    lengths = set()
    assert all(each.finished for found in ours for each in found)
    for row, found in enumerate(ours):
        for place, each in enumerate(found):
            other = theirs.sequences[row * beam + place, 1:].tolist()
            other = other[: other.index(EOS) + 1] if EOS in other else other
            assert other == [*each.tokens, *([EOS] if each.finished else [])]
            lengths.add(len(other))
            if beam > 1:
                assert each.score == pytest.approx(float(theirs.sequences_scores[row * beam + place]), abs=1e-4)
    assert len(lengths) > 1
