"""The cases of mixed.lua in PyTorch, printed the same way."""
import sys

import torch
from torch import nn

from operators import case


def digits():
    return nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(576, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))


def perceptron():
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


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
    layers, into = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for stage, out in enumerate((64, 128, 256, 512)):
        layers += [Block(into, out, 2 if stage else 1), Block(out, out, 1)]
        into = out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def train(name, make, shape, amp, memory_format=None):
    if sys.argv[1:] and not any(name.startswith(prefix) for prefix in sys.argv[1:]):
        return
    model, x, y = make(), torch.randn(shape), torch.randint(0, 10, (shape[0],))
    if memory_format:
        model, x = model.to(memory_format=memory_format), x.to(memory_format=memory_format)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=amp):
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

    case(name, step)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for amp in (False, True):
        mark = "_amp" if amp else ""
        train(f"net_train{mark}_b8", digits, (8, 1, 32, 32), amp)
        train(f"net_train{mark}_b64", digits, (64, 1, 32, 32), amp)
        train(f"mlp_train{mark}_b64", perceptron, (64, 784), amp)
        train(f"resnet18_cifar_train_b16{mark}", resnet18, (16, 3, 32, 32), amp)
        train(f"resnet18_cifar_train_b16{mark}_cl", resnet18, (16, 3, 32, 32), amp, torch.channels_last)


if __name__ == "__main__":
    main()
