"""`FinalSteps`: the steps after training, such as measurements of the final model, within the time limit of a run."""

import time
from collections.abc import Callable
from typing import TypeVar

from dragoman.base.cancellation import Cancelled, time_limit
from dragoman.base.log import info

Result = TypeVar("Result")


class FinalSteps:
    """Runs steps that a complete model folder can do without, and leaves them out when the time limit has passed.

    deadline: time at which the limit ends, by `time.monotonic`; None: no limit.
    """

    def __init__(self, deadline: float | None) -> None:
        self.deadline = deadline

    def end_of(self, fraction: float) -> float | None:
        """Return the time, by `time.monotonic`, at which a fraction of what is left has passed. None: no limit."""
        if self.deadline is None:
            return None
        now = time.monotonic()
        return now + fraction * max(0.0, self.deadline - now)

    def run(
        self, name: str, step: Callable[[], Result], *, fraction: float = 1.0, expected: float = 0.0, remedy: str = ""
    ) -> Result | None:
        """Run a step and return its result, or leave it out with one message and return None.

        A step is cancelled (`base.cancellation`) when it has taken the fraction of the time that was left, so that the
        following steps have the rest. expected: number of seconds that the step takes at least; with less time, it does
        not begin. name, remedy: what is left out, and what to do about it, for the message.
        """
        end = self.end_of(fraction)
        left = None if end is None else end - time.monotonic()
        if left is None or left > expected:
            with time_limit(left) as limit:
                try:
                    return step()
                except Cancelled:
                    if not limit.has_passed:
                        raise
        info(f"Left out because train.max_minutes leaves too little time: {name}{remedy and f'. {remedy}'}")
        return None
