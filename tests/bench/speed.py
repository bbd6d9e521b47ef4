"""The cases of speed.lua in PyTorch, printed the same way."""
import torch
from torch.nn import functional as F

from bench import made, size, uniform


def make_pointwise(function, n):
    x, y = uniform((size(n),), -3, 3), uniform((size(n),), -3, 3)
    return lambda: function(x, y)


def make_sum(n):
    x = uniform((size(n),), 0, 3)
    return lambda: x.sum()


def pointwise():
    functions = {"add": lambda x, y: x + y, "mul": lambda x, y: x * y, "relu": lambda x, y: x.relu(),
                 "exp": lambda x, y: x.exp(), "tanh": lambda x, y: x.tanh(), "gelu": lambda x, y: F.gelu(x)}
    for n in (100000, 10000000):
        for name, function in functions.items():
            made(f"{name}_{n}", lambda f=function, n=n: make_pointwise(f, n), 1)
        made(f"sum_{n}", lambda n=n: make_sum(n), 1)


def make_softmax():
    x = uniform((size(4096), size(1024)), -3, 3)
    return lambda: x.softmax(1)


def make_layernorm():
    width = size(1024)
    x, weight, bias = uniform((size(4096), width), -3, 3), uniform((width,)), uniform((width,))
    return lambda: F.layer_norm(x, (width,), weight, bias)


def make_matmul(dtype, side):
    x, y = uniform((side, side)).to(dtype), uniform((side, side)).to(dtype)
    return lambda: x.matmul(y)


def make_linear(rows):
    width = size(1024)
    x, weight, bias = uniform((rows, width)), uniform((width, width)), uniform((width,))
    return lambda: F.linear(x, weight, bias)


def products():
    for kind, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
        for n in (64, 256, 1024, 2048):
            made(f"matmul_{kind}_{n}", lambda d=dtype, n=n: make_matmul(d, size(n)), 1)
    for rows in (1, 16, 256):
        made(f"linear1024_f32_b{rows}", lambda n=rows: make_linear(size(n)), 1)


def make_difference(left, right):
    x, y = uniform(left), uniform(right)
    return lambda: x - y


def make_conv():
    x, weight = uniform((1, 1, 1, size(9000, 200))), uniform((1, 1, 1, 91))
    return lambda: F.conv2d(x, weight)


def make_denormal():
    x, y = uniform((size(256), 64), 0.5, 1) * 1e-39, uniform((64, 60), 0.5, 1)
    return lambda: x.matmul(y)


def make_small_softmax():
    x = uniform((256, 64), -3, 3)
    return lambda: x.softmax(1)


def slow_once():
    made("broadcast_1x48x2_48x1x2", lambda: make_difference((1, 48, 2), (48, 1, 2)), 1)
    made("broadcast_2x1x48_2x48x1", lambda: make_difference((2, 1, 48), (2, 48, 1)), 1)
    made("conv2d_1x1x1x9000_k91", make_conv, 1)
    made("matmul_256x64x60_denormal", make_denormal, 1)
    for threads in (1, 2, 16):
        made(f"softmax_256x64_t{threads}", make_small_softmax, threads)


def main():
    pointwise()
    made("softmax_4096x1024", make_softmax, 1)
    made("layernorm_4096x1024", make_layernorm, 1)
    products()
    slow_once()


if __name__ == "__main__":
    main()
