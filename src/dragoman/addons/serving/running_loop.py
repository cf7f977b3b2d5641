"""`run_beside_loop`: runs a server in a program that may have an event loop of its own, such as a notebook."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def run_beside_loop(run: Callable[[], None], shut_down: Callable[[], object]) -> None:
    """Run a server: here, or in another thread if an event loop runs here, as in a cell of a notebook.

    run: returns when the server has ended. shut_down: called on Ctrl-C in the second case, so that the server ends.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run()
        return
    with ThreadPoolExecutor(1) as executor:
        served = executor.submit(run)
        try:
            served.result()
        except KeyboardInterrupt:
            shut_down()
            served.result()
