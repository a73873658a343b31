# SPDX-License-Identifier: GPL-3.0-or-later
"""Small networks of four kinds, each with a batch and a loss."""
import torch
import torch.nn.functional as F
from torch import nn


class Cnn(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv3, self.drop = nn.Conv2d(width, width, 3, padding=1), nn.Dropout(0.2)
        self.out, self.inside, self.relu = nn.Linear(width * 100, 10), nn.ReLU(inplace=True), nn.ReLU()

    def forward(self, x):
        x = self.inside(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.drop(self.relu(self.conv3(x)))
        return self.out(F.adaptive_avg_pool2d(x, 10).flatten(1))


class Lm(nn.Module):
    """Letters into an LSTM of two layers."""

    def __init__(self, letters=50, width=24):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)
        self.out = nn.Linear(width, letters)

    def forward(self, x):
        return self.out(self.lstm(self.embed(x))[0]).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, width, heads, flash=False):
        super().__init__()
        self.heads, self.flash = heads, flash
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (s.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for s in self.qkv(x).split(c, 2))
        if self.flash:
            mixed = F.scaled_dot_product_attention(q, k, v)
            return self.out(mixed.transpose(1, 2).reshape(b, t, c))
        weights = F.softmax(q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width=32, heads=4, flash=False):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, flash)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop, self.gelu = nn.Dropout(0.1), nn.GELU()

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.down(self.gelu(self.up(self.norm2(x)))))


class Transformer(nn.Module):
    def __init__(self, letters=50, width=32, blocks=2, tied=False):
        super().__init__()
        self.embed = nn.Embedding(letters, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))
        self.out = nn.Linear(width, letters, bias=False)
        if tied:
            self.out.weight = self.embed.weight

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.out(x).transpose(1, 2)


class Unet(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.down1 = nn.Conv2d(3, width, 3, padding=1)
        self.down2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.middle = nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.join, self.out = nn.Conv2d(2 * width, width, 3, padding=1), nn.Conv2d(width, 2, 1)
        self.relu, self.pool = nn.ReLU(), nn.MaxPool2d(2)

    def forward(self, x):
        a = self.relu(self.down1(x))
        x = self.relu(self.down2(self.pool(a)))
        x = self.up(self.relu(self.middle(x)))
        return self.out(self.relu(self.join(torch.cat([x, a], 1))))


def pictures(size, classes, batch=8, each=False):
    def make(step):
        g = torch.Generator().manual_seed(step)
        labels = (batch, size, size) if each else (batch,)
        return (torch.randn(batch, 3, size, size, generator=g),
                torch.randint(0, classes, labels, generator=g))
    return make


def letters(length, batch=8):
    def make(step):
        g = torch.Generator().manual_seed(step)
        text = torch.randint(0, 50, (batch, length + 1), generator=g)
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()
    return make


NETS = {"cnn": (Cnn, pictures(20, 10)), "lstm": (Lm, letters(12)),
        "transformer": (Transformer, letters(24)), "unet": (Unet, pictures(16, 2, each=True))}

OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, 0.05),
              "momentum": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
              "adam": lambda p: torch.optim.Adam(p, 1e-3),
              "adamw": lambda p: torch.optim.AdamW(p, 1e-3)}
