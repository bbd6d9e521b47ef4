#!/usr/bin/env python3
"""Writes what autocast does in PyTorch: the class of every operator that it has kernels for, by device, in
classes.jsonl, and in dtypes.jsonl the dtypes that come out of calls on the CPU. tests/lua/test_autocast.lua
compares. Needs PyTorch.

What has a kernel is asked of PyTorch's dispatcher. Its classes on the CPU come from calls: an operator whose
result of float32 is bfloat16 casts down, one whose result of bfloat16 is float32 casts up, one that takes both
takes the widest. Those of CUDA are the lists of PyTorch's documentation."""
import json
import os

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
LOW, WIDE = torch.bfloat16, torch.float32

CUDA = {
    "lower": "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d prelu addmm addmv addr matmul einsum "
             "mm mv linear addbmm baddbmm bmm chain_matmul linalg_multi_dot linalg_vecdot gru_cell lstm_cell rnn_tanh_cell "
             "rnn_relu_cell scaled_dot_product_attention",
    "fp32": "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm "
            "group_norm rms_norm dist renorm logsumexp cdist pdist cosine_similarity cosine_embedding_loss poisson_nll_loss "
            "nll_loss hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss "
            "multilabel_margin_loss multi_margin_loss soft_margin_loss triplet_margin_loss "
            "binary_cross_entropy_with_logits",
    "fp32_result": "prod softmax log_softmax cumprod cumsum sum",
    "promote": "addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put tensordot scatter_add vdot",
    "banned": "binary_cross_entropy",
}


def r(*shape, dtype=WIDE):
    generator = torch.Generator().manual_seed(7)
    return torch.rand(shape, generator=generator).to(dtype) * 0.5 + 0.25


LABELS, SIGNS = torch.tensor([0, 2, 1]), torch.tensor([1, -1, 1])
# What each call reads in floats: shapes; and the call.
CALLS = {
    "mm": (((2, 3), (3, 2)), torch.mm), "bmm": (((2, 2, 3), (2, 3, 2)), torch.bmm),
    "matmul": (((2, 3), (3, 2)), torch.matmul), "addmm": (((2, 2), (2, 3), (3, 2)), torch.addmm),
    "addbmm": (((2, 2), (2, 2, 3), (2, 3, 2)), torch.addbmm), "baddbmm": (((2, 2, 2), (2, 2, 3), (2, 3, 2)), torch.baddbmm),
    "linear": (((2, 3), (4, 3), (4,)), F.linear), "prelu": (((2, 3), (1,)), F.prelu),
    "conv1d": (((1, 2, 5), (3, 2, 2)), F.conv1d), "conv2d": (((1, 2, 5, 5), (3, 2, 2, 2)), F.conv2d),
    "conv3d": (((1, 2, 3, 3, 3), (3, 2, 2, 2, 2)), F.conv3d),
    "conv_transpose1d": (((1, 2, 5), (2, 3, 2)), F.conv_transpose1d),
    "conv_transpose2d": (((1, 2, 5, 5), (2, 3, 2, 2)), F.conv_transpose2d),
    "conv_transpose3d": (((1, 2, 3, 3, 3), (2, 3, 2, 2, 2)), F.conv_transpose3d),
    "scaled_dot_product_attention": (((1, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4)), F.scaled_dot_product_attention),
    "linalg_vecdot": (((2, 3), (2, 3)), torch.linalg.vecdot), "einsum": (((2, 3), (3, 2)), lambda a, b: torch.einsum("ij,jk->ik", a, b)),
    "mv": (((2, 3), (3,)), torch.mv), "dot": (((3,), (3,)), torch.dot), "addmv": (((2,), (2, 3), (3,)), torch.addmv),
    "add": (((2, 3), (2, 3)), torch.add), "mul": (((2, 3), (2, 3)), torch.mul), "exp": (((2, 3),), torch.exp),
    "sum": (((2, 3),), torch.sum), "softmax": (((2, 3),), lambda x: torch.softmax(x, 1)),
    "log_softmax": (((2, 3),), lambda x: torch.log_softmax(x, 1)), "prod": (((2, 3),), torch.prod),
    "layer_norm": (((2, 3),), lambda x: F.layer_norm(x, (3,))), "relu": (((2, 3),), torch.relu),
    "cumsum": (((2, 3),), lambda x: torch.cumsum(x, 1)), "pow": (((2, 3),), lambda x: torch.pow(x, 2)),
    "cat": (((2, 3), (2, 3)), lambda a, b: torch.cat((a, b))), "stack": (((2, 3), (2, 3)), lambda a, b: torch.stack((a, b))),
    "index_copy": (((3, 2), (3, 2)), lambda a, b: torch.index_copy(a, 0, torch.tensor([0, 1, 2]), b)),
    "trace": (((3, 3),), torch.trace), "cdist": (((2, 3), (2, 3)), torch.cdist),
    "quantile": (((4,),), lambda x: torch.quantile(x, 0.5)), "nanquantile": (((4,),), lambda x: torch.nanquantile(x, 0.5)),
    "mse_loss": (((2, 3), (2, 3)), F.mse_loss), "l1_loss": (((2, 3), (2, 3)), F.l1_loss),
    "smooth_l1_loss": (((2, 3), (2, 3)), F.smooth_l1_loss), "huber_loss": (((2, 3), (2, 3)), F.huber_loss),
    "kl_div": (((2, 3), (2, 3)), lambda a, b: F.kl_div(a, b, reduction="batchmean")),
    "poisson_nll_loss": (((2, 3), (2, 3)), F.poisson_nll_loss), "soft_margin_loss": (((3,), (3,)), F.soft_margin_loss),
    "binary_cross_entropy": (((2, 3), (2, 3)), F.binary_cross_entropy),
    "binary_cross_entropy_with_logits": (((2, 3), (2, 3)), F.binary_cross_entropy_with_logits),
    "nll_loss": (((3, 4),), lambda x: F.nll_loss(x, LABELS)), "cross_entropy": (((3, 4),), lambda x: F.cross_entropy(x, LABELS)),
    "multi_margin_loss": (((3, 4),), lambda x: F.multi_margin_loss(x, LABELS)),
    "margin_ranking_loss": (((3,), (3,)), lambda a, b: F.margin_ranking_loss(a, b, SIGNS)),
    "hinge_embedding_loss": (((3,),), lambda x: F.hinge_embedding_loss(x, SIGNS)),
    "cosine_embedding_loss": (((3, 2), (3, 2)), lambda a, b: F.cosine_embedding_loss(a, b, SIGNS)),
    "triplet_margin_loss": (((2, 3), (2, 3), (2, 3)), F.triplet_margin_loss),
    "avg_pool3d": (((1, 2, 4, 4, 4),), lambda x: F.avg_pool3d(x, 2)), "max_pool3d": (((1, 2, 4, 4, 4),), lambda x: F.max_pool3d(x, 2)),
    "adaptive_avg_pool3d": (((1, 2, 4, 4, 4),), lambda x: F.adaptive_avg_pool3d(x, 2)),
    "max_pool2d": (((1, 2, 4, 4),), lambda x: F.max_pool2d(x, 2)), "avg_pool2d": (((1, 2, 4, 4),), lambda x: F.avg_pool2d(x, 2)),
    "batch_norm": (((3, 2),), lambda x: F.batch_norm(x, None, None, training=True)),
    "gelu": (((2, 3),), F.gelu), "sigmoid": (((2, 3),), torch.sigmoid), "mean": (((2, 3),), torch.mean),
    "linalg_inv": (((3, 3),), torch.linalg.inv), "linalg_svdvals": (((3, 3),), torch.linalg.svdvals),
    "linalg_cholesky": (((1, 1),), torch.linalg.cholesky), "linalg_solve": (((3, 3), (3, 2)), torch.linalg.solve),
    "linalg_matrix_rank": (((3, 3),), torch.linalg.matrix_rank), "inverse": (((3, 3),), torch.inverse),
}


def outcome(call, tensors):
    """The dtype of the result, or None where PyTorch refuses."""
    try:
        with torch.autocast("cpu", torch.bfloat16):
            return str(call(*tensors).dtype)[6:]
    except RuntimeError:
        return None


def dtypes_of(name):
    shapes, call = CALLS[name]
    found = {}
    for label, kinds in (("wide", (WIDE,)), ("low", (LOW,)), ("mixed", (WIDE, LOW)), ("swapped", (LOW, WIDE))):
        if len(kinds) <= len(shapes):
            found[label] = outcome(call, [r(*s, dtype=kinds[k % len(kinds)]) for k, s in enumerate(shapes)])
    return found


def class_of(name, dtypes):
    """From what comes out of a CPU call; an operator of integers alone can't be told."""
    if dtypes["wide"] == "bfloat16":
        return "lower"
    if dtypes["low"] == "float32":
        return "fp32"
    return "promote" if name in ("cat", "stack", "index_copy") else "none"


def registered(key):
    names = torch._C._dispatch_get_registrations_for_dispatch_key(key)
    return {n.split("::")[1].split(".")[0] for n in names}


def main():
    note = {"note": "autocast", "torch": torch.__version__.split("+")[0]}
    on_cuda = {n: c for c, names in CUDA.items() for n in names.split()}
    known = registered("AutocastCUDA") | {"pdist", "linalg_multi_dot"}
    missing = set(on_cuda) - known
    assert not missing, missing
    with open(os.path.join(HERE, "dtypes.jsonl"), "w") as out:
        print(json.dumps(note), file=out)
        for name in sorted(CALLS):
            print(json.dumps({"op": name, "r": dtypes_of(name)}), file=out)
    with open(os.path.join(HERE, "classes.jsonl"), "w") as out:
        print(json.dumps(note), file=out)
        listed = registered("AutocastCPU")
        for name in sorted(CALLS):
            if name in ("einsum", "linalg_matrix_rank"):  # what einsum calls is cast
                continue
            print(json.dumps({"device": "cpu", "op": name, "class": class_of(name, dtypes_of(name))}), file=out)
        for name in sorted(listed - set(CALLS)):
            print(json.dumps({"device": "cpu", "op": name, "class": "fp32", "listed": True}), file=out)
        for name, kind in sorted(on_cuda.items()):
            print(json.dumps({"device": "cuda", "op": name, "class": kind}), file=out)


if __name__ == "__main__":
    main()
