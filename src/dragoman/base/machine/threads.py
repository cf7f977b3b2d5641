"""How many threads PyTorch computes with."""


def use_threads(threads: int | None) -> None:
    """Let this process compute on that many CPU threads from now on; None changes nothing."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
