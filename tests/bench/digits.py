"""The cases of digits.lua in PyTorch, printed the same way."""
import torch
from torch import nn

import models
from bench import case


def main():
    torch.manual_seed(0)
    images, labels = torch.rand(1437, 1, 32, 32), torch.randint(0, 10, (1437,))
    model = models.digits()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x, y):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

    def epoch():
        order = torch.randperm(1437)
        for first in range(0, 1437, 32):
            pick = order[first:first + 32]
            step(images[pick], labels[pick])

    case("digits step", lambda: step(images[:32], labels[:32]))
    case("digits epoch", epoch)


if __name__ == "__main__":
    main()
