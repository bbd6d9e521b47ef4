"""The cases of mixed.lua in PyTorch, printed the same way."""
import torch
from torch import nn

import bench
import models


def make_train(model, shape, amp, memory_format):
    net = models.fill(model())
    shape = (bench.size(shape[0], 4), *shape[1:])
    x, y = bench.uniform(shape), bench.ints((shape[0],), 0, 10)
    if memory_format:
        net, x = net.to(memory_format=memory_format), x.to(memory_format=memory_format)
    step = models.step(net, x, y, "cpu" if amp else None)
    return step, lambda: models.three(step)


def train(name, model, shape, amp, memory_format=None):
    bench.made(name, lambda: make_train(model, shape, amp, memory_format), 1)


def make_rnn():
    steps = bench.size(100)
    x, u = bench.uniform((steps, 8, 64)), bench.uniform((64, 64), -0.2, 0.2).requires_grad_()
    w, start = bench.uniform((64, 64), -0.2, 0.2).requires_grad_(), torch.zeros(8, 64)
    optimizer = torch.optim.SGD([u, w], lr=0.01)

    def step():
        optimizer.zero_grad()
        h = start
        for t in range(steps):
            h = (x[t].mm(u) + h.mm(w)).tanh()
        loss = (h * h).mean()
        loss.backward()
        optimizer.step()
        return loss
    return step, lambda: models.three(step)


def make_transformer():
    layer = models.fill(nn.TransformerEncoderLayer(128, 4, 512, dropout=0, batch_first=True))
    x, target = (bench.uniform((bench.size(8, 2), 64, 128)) for _ in range(2))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.MSELoss()

    def step():
        optimizer.zero_grad()
        loss = criterion(layer(x), target)
        loss.backward()
        optimizer.step()
        return loss
    return step, lambda: models.three(step)


def main():
    for amp in (False, True):
        mark = "_amp" if amp else ""
        train(f"net_train{mark}_b8", models.net, (8, 1, 28, 28), amp)
        train(f"net_train{mark}_b64", models.net, (64, 1, 28, 28), amp)
        train(f"mlp_train{mark}_b64", models.perceptron, (64, 784), amp)
        train(f"resnet18_cifar_train_b16{mark}", models.resnet18, (16, 3, 32, 32), amp)
        train(f"resnet18_cifar_train_b16{mark}_cl", models.resnet18, (16, 3, 32, 32), amp, torch.channels_last)
    bench.made("rnn_loop100_h64_b8_train", make_rnn, 1)
    bench.made("transformer_block_train_d128_s64_b8", make_transformer, 1)


if __name__ == "__main__":
    main()
