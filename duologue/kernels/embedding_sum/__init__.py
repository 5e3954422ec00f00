"""The embeddings of several tokens for each row, added up."""

from __future__ import annotations

from torch import Tensor

from duologue.kernels import implementation


def embedding_sum(tokens: Tensor, table: Tensor, begins: Tensor) -> Tensor:
    """Add up.

    Shapes:
        tokens: [R, N] int32; a negative one counts as zeros
        table: [V, D], the tables of all streams, one after the other
        begins: [N] int32, where in it the table of each stream begins
        returns: [R, D], of the table's type
    """
    result: Tensor = implementation(__name__, table).embedding_sum(tokens, table, begins)
    return result
