"""The recurrent cells by name. To add one, add a class to this folder and a line here."""

from typing import Literal

from dragoman.nn.recurrent.cell import Cell
from dragoman.nn.recurrent.gru import GRUCell
from dragoman.nn.recurrent.lstm import LSTMCell
from dragoman.nn.recurrent.vanilla import VanillaCell

CELLS: dict[str, type[Cell]] = {"rnn": VanillaCell, "gru": GRUCell, "lstm": LSTMCell}
CellKind = Literal["rnn", "gru", "lstm"]
