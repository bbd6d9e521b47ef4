"""models.py: the networks, lists of tensors and training steps of models.lua in PyTorch."""
import contextlib

import torch
from torch import nn

import bench

# ---- networks ----


def digits():
    return nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(576, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1568, 10))


def perceptron():
    return nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))


class Block(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(into, out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.down = None
        if stride != 1 or into != out:
            self.down = nn.Sequential(nn.Conv2d(into, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (self.down(x) if self.down else x)).relu()


def resnet18():
    into = bench.size(64, 8)
    layers = [nn.Conv2d(3, into, 3, padding=1, bias=False), nn.BatchNorm2d(into), nn.ReLU()]
    for stage, out in enumerate((into, 2 * into, 4 * into, 8 * into)):
        layers += [Block(into, out, 2 if stage else 1), Block(out, out, 1)]
        into = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 10))


STAGES = (1,) if bench.TINY else (3, 4, 6, 3)


class Bottleneck(nn.Module):
    def __init__(self, into, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(into, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.down = None
        if stride != 1 or into != 4 * width:
            self.down = nn.Sequential(nn.Conv2d(into, 4 * width, 1, stride=stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.bn1(self.conv1(x)).relu()
        y = self.bn3(self.conv3(self.bn2(self.conv2(y)).relu()))
        return (y + (self.down(x) if self.down else x)).relu()


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, stride=2, padding=1)]
    into = 64
    for stage, blocks in enumerate(STAGES):
        width = 64 << stage
        for block in range(blocks):
            layers.append(Bottleneck(into, width, 2 if block == 0 and stage else 1))
            into = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000))


# ---- lists of tensors ----


def resnet50_shapes():
    shapes = []

    def conv(out, into, k):
        shapes.extend([(out, into, k, k), (out,), (out,)])
    conv(64, 3, 7)
    into = 64
    for stage, blocks in enumerate(STAGES):
        width = 64 << stage
        for block in range(blocks):
            conv(width, into, 1)
            conv(width, width, 3)
            conv(4 * width, width, 1)
            if block == 0:
                conv(4 * width, into, 1)
            into = 4 * width
    return shapes + [(1000, into), (1000,)]


def equal_shapes(n):
    return [(1000,)] * bench.size(n)


def parameters(shapes, device="cpu"):
    params = []
    for shape in shapes:
        params.append(bench.uniform(shape).to(device).requires_grad_())
        params[-1].grad = bench.uniform(shape).to(device)
    return params


# ---- training ----


def fill(model):
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() > 1:
                bound = (3 * p.shape[0] / p.numel()) ** 0.5
                p.copy_(bench.uniform(p.shape, -bound, bound))
            else:
                p.fill_(0 if name.endswith("bias") else 1)
    return model


def step(model, x, y, mixed=None):
    """`mixed`: the device of an autocast to bfloat16."""
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def train():
        optimizer.zero_grad()
        with torch.autocast(mixed, torch.bfloat16) if mixed else contextlib.nullcontext():
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    return train


def three(train):
    return [train().detach().float() for _ in range(3)]
