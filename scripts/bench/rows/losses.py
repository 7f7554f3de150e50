# SPDX-License-Identifier: MIT
"""Losses and distances: the value, and the value with its gradient, for n rows
of 100 elements."""
from suite_rows import Group, K

row = Group("losses", tolerance=1e-3, setup=(
    "x, t, v = x * 0.45 + 0.05, t * 0.45 + 0.05, v * 0.5 + 0.1",) * 2)


def loss(name, ours, theirs=None, **more):
    row(name, (10, 10 * K, 160 * K), "x=n,100>0 t=n,100>0 v=n,100>0", ours,
        theirs, gradient="x", **more)


loss("kl_div", "F.kl_div(x, t)")
loss("poisson_nll_loss, full", "F.poisson_nll_loss(x, t, true, true)",
     "F.poisson_nll_loss(x, t, True, True)")
loss("gaussian_nll_loss", "F.gaussian_nll_loss(x, t, v)")
loss("binary_cross_entropy", "F.binary_cross_entropy(x, t)")
loss("with_logits, pos_weight",
     'F.binary_cross_entropy_with_logits(x, t, nil, "mean", v)',
     "F.binary_cross_entropy_with_logits(x, t, pos_weight=v)")
loss("margin_ranking_loss", "F.margin_ranking_loss(x, t, v, 0.3)")
loss("hinge_embedding_loss", "F.hinge_embedding_loss(x, t, 0.3)")
loss("soft_margin_loss", "F.soft_margin_loss(x, t)")
loss("multilabel_soft_margin", "F.multilabel_soft_margin_loss(x, t)")
loss("cosine_similarity", "F.cosine_similarity(x, t, -1):sum()")
loss("pairwise_distance", "F.pairwise_distance(x, t):sum()")
loss("normalize", "F.normalize(x, 2, -1):sum()")
loss("cosine_embedding_loss",
     "F.cosine_embedding_loss(x, t, v:select(-1, 1):gt(0.6) * 2 - 1)",
     "F.cosine_embedding_loss(x, t, v.select(-1, 0).gt(0.6) * 2 - 1)")
loss("triplet_margin_loss", "F.triplet_margin_loss(x, t, v)")
loss("cdist, 10 rows, p=1", "nacre.cdist(x, t:narrow(1, 1, 10), 1):sum()",
     "torch.cdist(x, t.narrow(0, 0, 10), 1).sum()")
