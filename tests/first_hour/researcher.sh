# A researcher with a scorer of their own: a baseline, a file, a fair comparison, and a look inside.
# with: corpus
## paths/researcher.md
cat > base.yaml <<'EOF'
imports: [distance.py]
data:
  train: {source: train.en, target: train.de}
  valid: {source: valid.en, target: valid.de}
  source_language: en
  target_language: de
  batch: {tokens: 500}
text: {subword: {size: 500}}
model:
  preset: tiny
  width: 64
  encoder: {layers: 1}
  decoder: {layers: 1}
train: {validate_every: 200}
seeds: 2
EOF
cat > distance.py <<'EOF'
"""Scores −‖q − k‖² / √d_k: a key is attended to if it is near the query (Kim et al. 2021, "L2 attention")."""

from math import sqrt
from typing import Literal

from torch import Tensor

from dragoman.base.settings.config import Config
from dragoman.nn.attention.scorers import SCORERS, Scorer


class Distance(Scorer):
    is_dot_product = False

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        products = queries @ prepared.transpose(-2, -1)  # (B, h, …, T, S)
        lengths = queries.square().sum(-1, keepdim=True) + prepared.square().sum(-1).unsqueeze(-2)
        return (2 * products - lengths) / sqrt(queries.size(-1))


@SCORERS.register
class DistanceConfig(Config):
    kind: Literal["distance"] = "distance"

    def build(self, heads: int, query_width: int, key_width: int) -> Scorer:
        return Distance()
EOF
# python
import torch
from distance import Distance

queries, keys = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 5, 8)
expected = -torch.cdist(queries, keys).square() / 8**0.5
torch.testing.assert_close(Distance()(queries, keys), expected)
# bash
dragoman train base.yaml train.max_steps=10 --out runs/baseline --quiet
dragoman train base.yaml train.max_steps=10 --out runs/distance --quiet \
    model.decoder.cross_attention.scorer.kind=distance
export DRAGOMAN_IMPORT=distance.py
dragoman compare runs/baseline runs/distance --source test.en --reference test.de search.beam=1
dragoman compare runs/baseline runs/distance --source test.en --reference test.de search.beam=1 \
    --format latex --output table.tex --draw curves.svg
sentence=$(head -1 test.en)
dragoman inspect heads runs/distance/seed-1 "$sentence"
dragoman inspect heads runs/distance/seed-1 "$sentence" --off decoder.cross_attention:1:1
dragoman inspect runs/distance/seed-1 "$sentence" --out attention
