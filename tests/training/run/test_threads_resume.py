"""A run whose updates are divided among threads, killed and resumed, ends like an uninterrupted run.

Its batches are packed, and its subwords and dropout rates change.
"""

from pathlib import Path

from training_runs import SETTINGS, Server, differences, outcome, wait_until_reached, write_corpus

TWO = ["train.threads=2", "data.batch.tokens=2048", "model.dropout=0.2", "train.log_every=1"]
TWO += ["train.max_steps=7", "train.checkpoint_every=3"]
TWO += ["text.subword.dropout=0.1", "data.batch.packed=true", "train.dropout_epochs=9"]


def run(server: Server, folder: Path, *kills: int) -> None:
    command = ["train", *write_corpus(folder, pairs=600), *SETTINGS, *TWO]
    for step in kills:
        process = server.start(folder, *command, "--resume")
        wait_until_reached(process, step)
        process.kill()
        process.wait()
    process = server.start(folder, *command, "--resume")
    assert process.wait() == 0, process.said


def test_a_killed_run_with_two_threads_ends_the_same(server: Server, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    run(server, whole)
    run(server, killed, 4)
    assert differences(outcome(whole), outcome(killed)) == []
