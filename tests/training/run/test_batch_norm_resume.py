"""Running means of batch norm are part of a run: they survive kills and are saved in model folders."""

import signal
from pathlib import Path

import pytest
import torch
from engines import build_engine
from tiny_model import SOURCES, TARGETS, tiny_config, tiny_model, tiny_tokenizers
from training_runs import RUN, SETTINGS, Server, differences, outcome, wait_until_reached, write_corpus

from dragoman.checkpoint.folder import load_model_folder, model_parameters
from dragoman.checkpoint.tensors import load_tensors
from dragoman.data.batches.batch import collate
from dragoman.models.interface import Output
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.training.machine.journal import Journal
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.updates.update import Update

BATCH = ["model.encoder.normalisation.kind=batch", "model.decoder.normalisation.kind=batch", "train.log_every=1"]
BATCH += ["train.max_steps=12", "train.checkpoint_every=3"]


@pytest.mark.slow
@pytest.mark.parametrize("average", [[], ["train.ema=0.9"]], ids=["plain", "ema"])
def test_killed_and_resumed_equals_straight(server: Server, tmp_path: Path, average: list[str]) -> None:
    outcomes = []
    for name in ("straight", "killed"):
        folder = tmp_path / name
        folder.mkdir()
        command = ["train", *write_corpus(folder), *SETTINGS, *BATCH, *average]
        process = server.start(folder, *command, tick=0.02 if name == "killed" else None)
        if name == "killed":
            wait_until_reached(process, 4)
            process.kill()
            assert process.wait() == -signal.SIGKILL
            process = server.start(folder, *command, "--resume")
        assert process.wait() == 0, process.said
        assert ("Resuming at step" in process.said) == (name == "killed")
        outcomes.append(outcome(folder))
    assert differences(*outcomes) == []
    run = tmp_path / "killed" / RUN
    stored, _ = load_tensors(run / "model.safetensors")
    running = [name for name in stored if name.endswith("running_mean")]
    assert len(running) == 2 + 1 + 3 + 1  # pre-norm: one per sublayer, and a final one per side
    assert all(stored[name].any() for name in running)
    loaded = load_model_folder(run, torch.device("cpu")).model
    assert all(torch.equal(tensor, stored[name]) for name, tensor in model_parameters(loaded).items())


class Short(Seq2Seq):
    """A model whose backward pass does not fit with more than two pairs, after its forward pass has run."""

    def forward(self, source: torch.Tensor, source_mask: torch.Tensor, inputs: torch.Tensor) -> Output:
        output = super().forward(source, source_mask, inputs)
        if len(source) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes.")
        return output


def test_a_step_that_did_not_fit_has_no_effect(tmp_path: Path) -> None:
    """The first engine tries the whole batch and fails; the second knows that and does not try."""
    tokenizers, models = tiny_tokenizers(), []
    sources = [tokenizers.source.encode(each) for each in SOURCES]
    targets = [tokenizers.target.encode(each) for each in TARGETS]
    for _ in range(2):
        stack = {"normalisation": {"kind": "batch"}, "layers": 1, "heads": 2, "feedforward": 16}
        model = tiny_model(tiny_config(encoder=stack, decoder=stack, dropout=0.0), tokenizers)
        model.__class__ = Short
        optimiser = torch.optim.SGD(model.parameters(), lr=0.0)
        decisions = Journal(tmp_path / "journal")
        objective = CrossEntropy()
        engine = build_engine(model, objective, optimiser, decisions)
        engine.step(Update([collate(sources, targets, list(range(len(sources))))]), TrainingPoint(1), 0.1)
        models.append(model_parameters(model))
    assert all(torch.equal(tensor, models[1][name]) for name, tensor in models[0].items())
    assert any(name.endswith("running_mean") and tensor.any() for name, tensor in models[0].items())
