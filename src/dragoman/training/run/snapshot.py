"""Snapshots from which a run can be resumed with any number of ranks."""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.checkpoint.shards import read_shards, shard_shapes, write_shards
from dragoman.checkpoint.store import TrainingSnapshot
from dragoman.checkpoint.tensors import fill, model_parameters
from dragoman.training.progress.progress import RunProgress
from dragoman.training.run.session import Session


def save_snapshot(session: Session, progress: RunProgress) -> None:
    """Save parameters, optimiser and progress. All ranks write sharded tensors; the first rank writes all others."""
    session.parallel.check_equal()
    tensors: dict[str, Mapping[str, Tensor]] = {
        "model": {name: value.detach() for name, value in model_parameters(session.model).items()},
        "optimiser": optimiser_tensors(session.engine.optimiser, session.model),
    }
    if session.average is not None:
        tensors["average"] = session.average.shadow
    ranks, state = session.ranks, progress.to_json()
    if not session.parallel.sharded:
        if ranks.is_main:
            session.store.commit_training(progress.step, tensors, state)
    elif ranks.is_main:
        with session.store.staged_training(progress.step, state) as folder:
            ranks.broadcast(str(folder))
            _write(folder, tensors, session)
    else:
        _write(Path(ranks.broadcast("")), tensors, session)
    ranks.wait()


def restore_snapshot(session: Session, snapshot: TrainingSnapshot) -> None:
    """Restore the tensors of a snapshot.

    The function returns only after all ranks have restored them, so that the first rank may write a new snapshot.
    """
    parallel, model, optimiser = session.parallel, session.model, session.engine.optimiser
    parameters = model_parameters(model)
    averages = {} if session.average is None else {"average": session.average.shadow}
    if snapshot.shards:
        for stem, targets in {"model": {n: p.detach() for n, p in parameters.items()}, **averages}.items():
            read_shards(snapshot.shards[stem], targets)
        state = {}
        if (folder := snapshot.shards.get("optimiser")) is not None:  # None before the first step
            state = _like_state(parameters, shard_shapes(folder))
            read_shards(folder, state)
        restore_optimiser(optimiser, model, state)
        session.ranks.wait()
        return
    for stem, targets in {"model": parameters, **averages}.items():
        fill(targets, {name: parallel.shard_like(snapshot.tensors[stem][name], each) for name, each in targets.items()})
    state = {
        name: parallel.shard_like(value.to(session.ranks.device), parameters[name.rpartition("/")[0]])
        for name, value in snapshot.tensors["optimiser"].items()
    }
    restore_optimiser(optimiser, model, state)
    session.ranks.wait()


def _write(folder: Path, tensors: Mapping[str, Mapping[str, Tensor]], session: Session) -> None:
    for stem, named in tensors.items():
        write_shards(folder / stem, named, session.ranks.group)


def _like_state(parameters: Mapping[str, Tensor], shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """Return zero tensors for an optimiser's state: sharded if they have the shape of their parameter, else whole."""
    state = {}
    for name, shape in shapes.items():
        parameter = parameters[name.rpartition("/")[0]]
        same = shape == parameter.shape
        state[name] = torch.zeros_like(parameter.detach()) if same else torch.zeros(shape, device=parameter.device)
    return state


def optimiser_tensors(optimiser: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors of the optimiser's state by `parameter name/state name`."""
    return {
        f"{name}/{key}": value
        for name, parameter in model.named_parameters()
        for key, value in optimiser.state[parameter].items()
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Restore an optimiser's state from the tensors returned by `optimiser_tensors`."""
    for name, parameter in model.named_parameters():
        state = {key.rpartition("/")[2]: value for key, value in tensors.items() if key.rpartition("/")[0] == name}
        optimiser.state[parameter] = {key: value.clone() for key, value in state.items()}
