"""Operators over one to three spatial dims: pooling, padding, interpolation, shuffles, sampling."""
import math

import torch
import torch.nn.functional as F

from cases import case, family, torch_function
from operands import X, Both, constant, index, ints, lit, pos, ties, unit

family("spatial")

# ---- convolution ----

torch_function("conv1d", F.conv1d)
case("conv1d", X(2, 3, 8), X(4, 3, 3), X(4))
case("conv1d", X(3, 9), X(2, 3, 2), None, 2, 1, 3)
case("conv1d", X(1, 4, 6), X(6, 2, 3), X(6), padding="same", groups=2)
case("conv1d", X(1, 2, 6), X(1, 2, 4), None, padding="same", dilation=2)
case("conv1d", X(1, 2, 6), X(1, 2, 4), None, 2, "valid")
case("conv1d", X(0, 2, 6), X(3, 2, 2), X(3))
case("conv1d", X(1, 1, 400), X(1, 1, 91))
case("conv1d", ints(1, 2, 5), ints(2, 2, 3), ints(2), 1, 1)
torch_function("conv2d", F.conv2d)
case("conv2d", X(1, 2, 5, 6), X(3, 2, 2, 3), X(3), padding="same")
case("conv2d", X(2, 5, 6), X(1, 2, 3, 3), None, 1, "same", [1, 2])
case("conv2d", X(1, 2, 5, 6), X(3, 2, 2, 3), X(3), [2, 1], "valid")
case("conv2d", ints(2, 2, 5, 4), ints(4, 1, 3, 2), None, [1, 2], 1, 1, 2)
torch_function("conv3d", F.conv3d)
case("conv3d", X(1, 2, 4, 5, 4), X(3, 2, 2, 3, 2), X(3))
case("conv3d", X(2, 4, 4, 3), X(2, 2, 3, 2, 2), None, [1, 2, 1], [1, 0, 1], [1, 2, 1])
case("conv3d", X(1, 4, 3, 4, 3), X(2, 2, 3, 2, 1), X(2), padding="same", groups=2)
case("conv3d", X(2, 1, 3, 3, 4), X(2, 1, 2, 2, 2), X(2), 2, 1)
case("conv3d", ints(1, 1, 3, 3, 4), ints(2, 1, 2, 2, 2), ints(2))
for n, shape, kernel in ((1, (2, 4, 5), (3,)), (2, (1, 4, 3, 4), (2, 3)), (3, (1, 4, 2, 3, 2), (2, 1, 3))):
    name = f"conv_transpose{n}d"
    torch_function(name, getattr(F, name))
    case(name, X(*shape), X(4, 3, *kernel), X(3))
    case(name, X(*shape[1:]), X(4, 2, *kernel), None, 2, [1, 0, 1][-n:], 1)
    case(name, X(*shape), X(4, 1, *kernel), X(2), [3, 2, 3][:n], 0, [2, 1, 0][:n], 2)
    case(name, X(*shape), X(4, 2, *kernel), X(2), 1, 0, 1, dilation=2)
    case(name, X(*shape), X(4, 2, *kernel), X(2), 1, [1, 0, 1][-n:], 1, dilation=3)
    case(name, X(0, *shape[1:]), X(4, 2, *kernel), X(2), grad=False)

# ---- means ----

torch_function("avg_pool1d", F.avg_pool1d)
case("avg_pool1d", X(2, 3, 8), 2)
case("avg_pool1d", X(3, 7), 3, 2, 1)
case("avg_pool1d", X(1, 2, 7), 4, 3, 2, True, False)
case("avg_pool1d", X(1, 2, 6), [2], stride=[5], padding=[1], ceil_mode=True)
case("avg_pool1d", X(0, 2, 6), 2)
torch_function("avg_pool3d", F.avg_pool3d)
case("avg_pool3d", X(1, 2, 4, 4, 6), 2)
case("avg_pool3d", X(1, 3, 4, 5), [1, 2, 3], [1, 2, 1], [0, 1, 1])
case("avg_pool3d", X(2, 1, 3, 3, 3), 2, 2, 1, True, False)
case("avg_pool3d", X(1, 1, 3, 4, 4), 2, 1, divisor_override=3)
torch_function("adaptive_avg_pool1d", F.adaptive_avg_pool1d)
case("adaptive_avg_pool1d", X(2, 3, 7), 3)
case("adaptive_avg_pool1d", X(3, 5), [5])
case("adaptive_avg_pool1d", X(1, 1, 3), 7)
case("adaptive_avg_pool1d", X(2, 1, 4), 1)
torch_function("adaptive_avg_pool2d", F.adaptive_avg_pool2d)
case("adaptive_avg_pool2d", X(2, 2, 4, 6), 2)
case("adaptive_avg_pool2d", X(1, 5, 7), [3, 2])
case("adaptive_avg_pool2d", X(1, 1, 2, 2), [3, 4])
case("adaptive_avg_pool2d", X(2, 1, 3, 3), 1)
case("adaptive_avg_pool2d", X(2, 1, 3, 5), Both([None, 2], [False, 2]))
case("adaptive_avg_pool2d", X(0, 1, 3, 5), 2)
torch_function("adaptive_avg_pool3d", F.adaptive_avg_pool3d)
case("adaptive_avg_pool3d", X(1, 2, 3, 4, 5), 2)
case("adaptive_avg_pool3d", X(2, 4, 3, 5), [3, 2, 4])
case("adaptive_avg_pool3d", X(1, 1, 3, 4, 5), Both([None, 2, None], [False, 2, False]))
case("adaptive_avg_pool3d", X(1, 1, 2, 2, 2), [1, 3, 2])
for n, shape in ((1, (2, 2, 7)), (2, (2, 2, 5, 6)), (3, (1, 1, 4, 5, 4))):
    name = f"lp_pool{n}d"
    torch_function(name, getattr(F, name))
    case(name, pos(*shape), 2, 2)
    case(name, pos(*shape), 3, 2, 1)
    case(name, pos(*shape), 2, 3, 2, True)
    case(name, pos(*shape), 1, 2)

# ---- maxima ----

for n, shape in ((1, (2, 2, 9)), (2, (2, 2, 4, 6)), (3, (1, 2, 4, 5, 6))):
    name = f"max_pool{n}d"
    torch_function(name, getattr(F, name), (1,))
    case(name, X(*shape), 2)
    case(name, X(*shape), 3, 2, 1, return_indices=True)
    case(name, X(*shape[1:]), 2, 1, return_indices=True)
    case(name, X(*shape), [2] * n, [1] * n, [1] * n, [2] * n, True, return_indices=True)
    case(name, ties(*shape), 2, 1, return_indices=True)
    case(name, ints(*shape), 2, return_indices=True)
    name = f"adaptive_max_pool{n}d"
    torch_function(name, getattr(F, name), (1,))
    case(name, X(*shape), 2)
    case(name, X(*shape), 3, return_indices=True)
    case(name, X(*shape[1:]), [2] * n, return_indices=True)
    case(name, ties(*shape), 1, return_indices=True)
case("max_pool2d", X(1, 5, 5), 3, 2, 1)
case("max_pool2d", X(1, 1, 5, 7), [2, 3], [1, 2], [1, 0], [2, 1], True)
case("max_pool2d", ties(1, 1, 6, 6), 3, 1)
case("max_pool2d", lit([1.0, math.nan, math.nan, 2.0, -math.inf, 0.0, 3.0, math.inf], 1, 2, 4), 2)
case("max_pool2d", lit([1.0, math.nan, 2.0, -math.inf, 0.0, 3.0, 4.0, 5.0, 1.0, 0.0, math.inf, 1.0], 1, 3, 4), 2, 1)
case("max_pool2d", lit([1.0, math.nan, 2.0, 7.0, 0.0, 3.0, 4.0, 5.0, math.nan], 1, 3, 3), 3, 1, 1, grad=False)
case("adaptive_max_pool2d", X(1, 2, 5, 4), Both([None, 3], [False, 3]), return_indices=True)
case("max_pool1d", lit([1.0, math.nan, math.nan, -math.inf, -math.inf, math.inf], 1, 1, 6), 3, return_indices=True)
case("max_pool1d", lit([-math.inf] * 4, 1, 4), 2, return_indices=True, grad=False)
for n, shape in ((1, (1, 2, 3)), (2, (1, 2, 2, 2)), (3, (1, 1, 2, 2, 1))):
    name = f"max_unpool{n}d"
    places = {1: [0, 3, 5, 1, 2, 4], 2: [0, 3, 9, 14, 5, 2, 8, 15], 3: [0, 7, 17, 30]}[n]
    torch_function(name, getattr(F, name))
    case(name, X(*shape), index(places, *shape), 2)
    case(name, X(*shape[1:]), index(places, *shape[1:]), [2] * n, stride=[2] * n)
    case(name, X(*shape), index(places, *shape), 3, 2)
    case(name, X(*shape), index(places, *shape), 2, 2, 0, [2 * k + 1 for k in shape[2:]])

# ---- padding ----

torch_function("pad", F.pad)
case("pad", X(2, 3), [1, 2])
case("pad", X(2, 3), [1, 2, 0, 1], value=1.5)
case("pad", X(3, 4, 4), [-1, 2, 1, -2])
case("pad", X(2, 2), [-1, -1])
case("pad", X(0, 2), [1, 1, 1, 1], value=-2)
case("pad", X(2), [])
case("pad", ints(2, 3), [1, 0], value=7)
case("pad", X(1, 2, 2, 2, 2), [1, 0, 0, 1, 2, -1, 1, 1, 0, 1])
for mode in ("reflect", "replicate", "circular"):
    case("pad", X(2, 5), [2, 3], mode)
    case("pad", X(1, 2, 4), [1, 3], mode)
    case("pad", X(2, 4, 5), [1, 2, 3, 0], mode)
    case("pad", X(1, 2, 4, 5), [4, 1, -1, 2], mode)
    case("pad", X(1, 4, 3, 4), [1, 1, 2, 0, 3, 3], mode)
    case("pad", X(2, 1, 2, 3, 2), [1, 0, 2, 2, 1, 1], mode)
    case("pad", ints(1, 2, 4), [1, 2], mode)

# ---- interpolation ----

torch_function("interpolate", F.interpolate)
case("interpolate", X(2, 2, 2, 3), scale_factor=2)
case("interpolate", X(1, 2, 5, 5), [3, 4])
case("interpolate", X(1, 1, 3, 4), scale_factor=1.5, mode="nearest")
case("interpolate", X(1, 1, 3, 3), size=3)
case("interpolate", X(1, 1, 7, 5), scale_factor=0.6)
case("interpolate", X(2, 3, 5), 8)
case("interpolate", X(1, 1, 2, 3, 4), scale_factor=[2, 1.5, 0.5])
for mode, shape in (("nearest-exact", (1, 2, 5)), ("nearest-exact", (1, 1, 5, 4)), ("nearest-exact", (1, 1, 2, 3, 4)),
                    ("area", (1, 2, 7)), ("area", (1, 1, 5, 4)), ("area", (1, 1, 2, 3, 4))):
    case("interpolate", X(*shape), [3, 7, 5][:len(shape) - 2], mode=mode)
    case("interpolate", X(*shape), scale_factor=1.7, mode=mode)
for mode, shape in (("linear", (2, 2, 5)), ("bilinear", (1, 2, 4, 5)), ("bicubic", (1, 2, 5, 4)),
                    ("trilinear", (1, 1, 3, 4, 2))):
    n = len(shape) - 2
    for align in (False, True):
        case("interpolate", X(*shape), [7, 3, 4][:n], mode=mode, align_corners=align)
        case("interpolate", X(*shape), [1] * n, mode=mode, align_corners=align)
        case("interpolate", X(*shape), scale_factor=1.7, mode=mode, align_corners=align)
        case("interpolate", X(*shape), scale_factor=[0.6, 2, 1.3][:n], mode=mode, align_corners=align,
             recompute_scale_factor=True)
    case("interpolate", X(*shape), list(shape[2:]), mode=mode)
for mode in ("bilinear", "bicubic"):
    case("interpolate", X(1, 1, 9, 7), [4, 3], mode=mode, antialias=True)
    case("interpolate", X(1, 2, 4, 5), scale_factor=[1.6, 0.4], mode=mode, antialias=True)
    case("interpolate", X(1, 1, 6, 5), [3, 8], mode=mode, align_corners=True, antialias=True)

for mode in ("bilinear", "bicubic"):
    for more in ({}, {"align_corners": True}, {"antialias": True}):
        case("interpolate", ints(1, 2, 9, 7, low=0, high=255, dtype=torch.uint8), [13, 5], mode=mode, **more)
    case("interpolate", ints(1, 1, 8, 11, low=0, high=255, dtype=torch.uint8), scale_factor=[0.6, 1.7], mode=mode)

# ---- moves ----

torch_function("pixel_shuffle", F.pixel_shuffle)
case("pixel_shuffle", X(1, 8, 2, 3), 2)
case("pixel_shuffle", X(9, 1, 2), 3)
case("pixel_shuffle", X(2, 1, 4, 2, 2), 2)
case("pixel_shuffle", X(1, 2, 2, 2), 1)
case("pixel_shuffle", X(0, 4, 2, 2), 2, grad=False)
torch_function("pixel_unshuffle", F.pixel_unshuffle)
case("pixel_unshuffle", X(1, 2, 4, 6), 2)
case("pixel_unshuffle", X(1, 3, 6), 3)
case("pixel_unshuffle", X(2, 1, 1, 4, 2), 2)
case("pixel_unshuffle", X(1, 2, 2, 2), 1)
torch_function("channel_shuffle", torch.channel_shuffle)
case("channel_shuffle", X(1, 6, 2, 2), 2)
case("channel_shuffle", X(2, 6, 3), 3)
case("channel_shuffle", X(1, 4, 1, 1, 2), 4)
case("channel_shuffle", X(1, 4, 2, 2), 1)
torch_function("im2col", F.unfold)
case("im2col", X(2, 3, 4, 5), 2)
case("im2col", X(1, 2, 5, 5), [2, 3], 1, [1, 0], [2, 1])
case("im2col", X(2, 5, 6), [2, 2], [2, 1], 1, 3)
case("im2col", X(0, 2, 3, 3), 2)
torch_function("col2im", F.fold)
case("col2im", X(2, 12, 12), [4, 5], 2)
case("col2im", X(1, 12, 9), 5, [2, 3], 1, [1, 0], [2, 1])
case("col2im", X(8, 6), [5, 6], [2, 2], [2, 1], 1, 3)
case("col2im", X(1, 4, 4), [4, 4], 2, stride=2)

# ---- sampling ----

def grid(*shape):
    """Places of a grid, some beyond the edges, none on a corner of anything."""
    x = unit(*shape)
    x.values = [round(1.4 * v + 0.013, 4) for v in x.values]
    return x


torch_function("grid_sample", F.grid_sample)
for mode in ("bilinear", "nearest", "bicubic"):
    for padding in ("zeros", "border", "reflection"):
        case("grid_sample", X(2, 2, 4, 5), grid(2, 3, 2, 2), mode, padding)
        case("grid_sample", X(1, 1, 3, 4), grid(1, 4, 3, 2), mode, padding, True)
        if mode != "bicubic":
            case("grid_sample", X(1, 2, 2, 3, 4), grid(1, 2, 1, 3, 3), mode, padding, False)
case("grid_sample", X(1, 1, 1, 1), grid(1, 2, 2, 2), "bilinear", "reflection", True)
case("grid_sample", X(1, 2, 3, 3), constant(lit([-1.0, -1.0, 1.0, 1.0, 0.0, 0.0, -3.0, math.nan], 1, 2, 2, 2)))
case("grid_sample", X(0, 2, 3, 3), grid(0, 2, 2, 2))
torch_function("affine_grid", F.affine_grid)
case("affine_grid", X(2, 2, 3), [2, 1, 3, 4])
case("affine_grid", X(1, 2, 3), [1, 3, 2, 2], True)
case("affine_grid", X(1, 3, 4), [1, 1, 2, 3, 2], align_corners=False)
case("affine_grid", X(1, 2, 3), [1, 1, 1, 5], align_corners=True)
