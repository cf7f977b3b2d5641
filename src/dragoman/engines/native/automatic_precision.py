"""The choice of a precision for the native engine by the measured cost and speed of int8."""

from pathlib import Path
from typing import Literal, NamedTuple

from dragoman.checkpoint.folder import fingerprint
from dragoman.checkpoint.precision_cost import MAX_BLEU_LOSS, PrecisionCost, read_precision_cost
from dragoman.engines.native.calibration import relative_speed
from dragoman.native.build import best_library
from dragoman.native.library import code_bits


class AutomaticPrecision(NamedTuple):
    """The precision that is chosen for a model on this machine. reason: one line for the user."""

    precision: Literal["float32", "int8"]
    reason: str


def automatic_precision(folder: Path) -> AutomaticPrecision:
    """Return int8 if its measured loss is at most `MAX_BLEU_LOSS` and it is faster on this processor, else float32.

    Compiles the native engine's library if a measurement exists. Raises the same errors as `best_library`.
    """
    remedy = f"`dragoman evaluate precision-cost {folder}` measures it"
    cost = read_precision_cost(folder)
    if cost is None:
        return AutomaticPrecision("float32", f"float32: what int8 costs has not been measured for this model. {remedy}")
    if cost.model != fingerprint(folder):
        return AutomaticPrecision("float32", f"float32: the model has changed since int8 was measured. {remedy} again")
    library = best_library()
    return choose_precision(cost, code_bits(library), relative_speed("int8", library), remedy)


def choose_precision(cost: PrecisionCost, bits: int, speed: float, remedy: str) -> AutomaticPrecision:
    """Return the precision for a processor whose codes have `bits` bits.

    speed: the speed of int8 relative to float32 on this processor. remedy: the command that measures the cost.
    """
    measured = cost.of_bits(bits)
    if measured is None:
        reason = f"what int8 costs has not been measured with {bits} bits, which this processor uses. {remedy}"
        return AutomaticPrecision("float32", f"float32: {reason}")
    if cost.bleu_loss(measured) > MAX_BLEU_LOSS:
        reason = f"with int8, {cost.summary(measured)} (limit: {-MAX_BLEU_LOSS:.2f}). To use it: --precision int8"
        return AutomaticPrecision("float32", f"float32: {reason}")
    if speed <= 1:
        reason = f"int8 is not faster on this processor ({speed:.2f} times the speed of float32)"
        return AutomaticPrecision("float32", f"float32: {reason}")
    reason = (
        f"{speed:.1f} times as fast as float32 on this processor; {cost.summary(measured)}. "
        "To compute exactly: --precision float32"
    )
    return AutomaticPrecision("int8", f"int8: {reason}")
