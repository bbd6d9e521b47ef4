"""foreach.py: the cases of foreach.lua in PyTorch."""
import torch

import bench
import models


def after_three(step, tensors):
    """What three steps make of the tensors, for comparing."""
    def result():
        for _ in range(3):
            step()
        return tensors
    return result


def make_optimizer(kind, foreach, shapes):
    params = models.parameters(shapes)
    if kind == "sgdm":
        optimizer = torch.optim.SGD(params, lr=0.01, momentum=0.9, foreach=foreach)
    else:
        optimizer = torch.optim.Adam(params, lr=0.001, foreach=foreach)
    return optimizer.step, after_three(optimizer.step, params)


def optimizers(name, shapes):
    for kind in ("sgdm", "adam"):
        for way in ("loop", "foreach"):
            bench.made(f"{kind}_{way}_{name}", lambda k=kind, w=way: make_optimizer(k, w == "foreach", shapes), 1)


def add_loop(xs, ys):
    for x, y in zip(xs, ys):
        x.add_(y)


def make_adds(add, shapes):
    xs, ys = ([make(shape) for shape in shapes] for make in (torch.zeros, torch.ones))

    def step():
        add(xs, ys)
    return step, after_three(step, xs)


def make_memory():
    x, y = (make(bench.size(25600000)) for make in (torch.zeros, torch.ones))
    return lambda: x.add_(y)


def main():
    bench.made("memory_25.6M_3x", make_memory, 1)
    for count in (100, 500):
        shapes = models.equal_shapes(count)
        for way, add in (("loop", add_loop), ("foreach", torch._foreach_add_)):
            bench.made(f"add_{way}_{count}x1k", lambda add=add, shapes=shapes: make_adds(add, shapes), 1)
        optimizers(f"{count}x1k", shapes)
    optimizers("resnet50", models.resnet50_shapes())


if __name__ == "__main__":
    main()
