"""Entity vectors of two graphs in one space, dense or sparse, and how they are compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    Vectors = NDArray[np.float32] | csr_matrix

MEASURES = ("cosine", "inner", "manhattan")


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Row i of `source` is the vector of source entity i; likewise `target`. Both have the same number of columns.

    `measure` says how vectors are compared: `cosine`, `inner` (product), or `manhattan` (minus the distance, so that
    higher is always better). `info` records how they were made (model, epochs, validation score).

    >>> import numpy as np, rlea
    >>> vectors = rlea.Embeddings(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32), name="one-hot")
    >>> vectors.measure, vectors.is_sparse
    ('cosine', False)
    """

    source: Vectors  # (num_source_entities, dim)
    target: Vectors  # (num_target_entities, dim)
    name: str = "file"
    measure: str = "cosine"
    info: dict[str, Any] = field(default_factory=dict)
    # Whether the seeds may have had a part in making them: their vectors then give held-out seeds away.
    is_fitted: bool = True

    def __post_init__(self) -> None:
        if self.measure not in MEASURES:
            raise ValueError(f"measure must be one of {', '.join(MEASURES)}, not {self.measure!r}")
        if self.source.shape[1] != self.target.shape[1]:
            raise ValueError("source and target vectors differ in dimension")
        if self.measure == "manhattan" and self.is_sparse:
            raise ValueError("sparse vectors are compared by cosine or inner product")

    @property
    def is_sparse(self) -> bool:
        return not isinstance(self.source, np.ndarray)
