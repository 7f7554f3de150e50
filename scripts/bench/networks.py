# SPDX-License-Identifier: MIT
"""The networks of scripts/networks.lua in PyTorch, for rows/training.py."""
import torch
from torch import nn


def fcn5(inputs, n):
    return nn.Sequential(
        nn.Linear(inputs, n), nn.Sigmoid(), nn.Linear(n, n), nn.Sigmoid(),
        nn.Linear(n, n), nn.Sigmoid(), nn.Linear(n, inputs))


def alexnet(divisor):
    def conv(n, m, kernel, **options):
        return nn.Conv2d(n if n == 3 else n // divisor, m // divisor, kernel,
                         **options)
    wide = 4096 // divisor
    return nn.Sequential(
        conv(3, 96, 11, stride=4, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        conv(96, 256, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
        conv(256, 384, 3, padding=1), nn.ReLU(),
        conv(384, 384, 3, padding=1), nn.ReLU(),
        conv(384, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
        nn.Flatten(), nn.Linear(9216 // divisor, wide), nn.ReLU(),
        nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 1000))


def conv_norm(n, m, kernel, **options):
    return [nn.Conv2d(n, m, kernel, bias=False, **options), nn.BatchNorm2d(m)]


class Bottleneck(nn.Module):
    """A block; `skip' changes its input to the shape of its output."""

    def __init__(self, n, width, stride):
        super().__init__()
        self.main = nn.Sequential(
            *conv_norm(n, width, 1), nn.ReLU(),
            *conv_norm(width, width, 3, stride=stride, padding=1),
            nn.ReLU(), *conv_norm(width, 4 * width, 1))
        self.skip = nn.Identity()
        if stride > 1 or n != 4 * width:
            self.skip = nn.Sequential(
                *conv_norm(n, 4 * width, 1, stride=stride))

    def forward(self, x):
        return torch.relu(self.main(x) + self.skip(x))


def resnet50(width):
    parts = [*conv_norm(3, width, 7, stride=2, padding=3), nn.ReLU(),
             nn.MaxPool2d(3, 2, 1)]
    n = width
    for i, count in enumerate((3, 4, 6, 3)):
        for k in range(count):
            parts.append(Bottleneck(n, width << i, 2 if k == 0 and i else 1))
            n = 4 * width << i
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(n, 1000))


class Words(nn.Module):
    """The next word of texts."""

    def __init__(self, words, size):
        super().__init__()
        self.embedding = nn.Embedding(words, size)
        self.lstm = nn.LSTM(size, size, 2)
        self.fc = nn.Linear(size, words)

    def forward(self, x):
        return self.fc(self.lstm(self.embedding(x))[0].flatten(0, 1))


def make(name, small):
    """A network, its input and its classes."""
    if name == "FCN-5":
        n, batch = (200, 4) if small else (26752, 64)
        return (fcn5(n, 32 if small else 2048), torch.randn(batch, n),
                torch.randint(n, [batch]))
    if name == "LSTM-64":
        words, steps, batch = (50, 5, 3) if small else (10000, 64, 128)
        return (Words(words, 8 if small else 256),
                torch.randint(words, [steps, batch]),
                torch.randint(words, [steps * batch]))
    if name == "AlexNet":
        net, batch, size = alexnet(16 if small else 1), 1 if small else 16, 224
    else:
        net, batch, size = resnet50(4 if small else 64), 16, 224
        if small:
            batch, size = 2, 64
    return (net, torch.randn(batch, 3, size, size),
            torch.randint(1000, [batch]))
