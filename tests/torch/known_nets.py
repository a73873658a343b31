# SPDX-License-Identifier: GPL-3.0-or-later
"""ResNet-50 and GPT-2 small, as published, in plain torch."""
import torch
import torch.nn.functional as F
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, inner, width, stride):
        super().__init__()
        outer = 4 * width
        self.conv1, self.bn1 = nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, outer, 1, bias=False), nn.BatchNorm2d(outer)
        self.down = None
        if stride != 1 or inner != outer:
            self.down = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False),
                                      nn.BatchNorm2d(outer))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        y += x if self.down is None else self.down(x)
        return F.relu(y, inplace=True)


class Resnet50(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        blocks, inner = [], 64
        for count, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
            for i in range(count):
                blocks.append(Bottleneck(inner, width, stride if i == 0 else 1))
                inner = 4 * width
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(2048, 1000)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.blocks(F.max_pool2d(x, 3, 2, 1))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def dropout(x, training):
    """As on a GPU: the mask has a byte an element."""
    return torch.native_dropout(x, 0.1, True)[0] if training else x


class Gpt2Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = (s.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for s in self.qkv(x).split(c, 2))
        weights = (q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        mask = torch.ones(t, t, dtype=torch.bool).tril()
        weights = F.softmax(weights.masked_fill(~mask, float("-inf")), -1)
        y = dropout(weights, self.training) @ v
        return self.proj(y.transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + dropout(self.attend(self.ln1(x)), self.training)
        y = self.down(F.gelu(self.up(self.ln2(x))))
        return x + dropout(y, self.training)


class Gpt2(nn.Module):
    def __init__(self, words=50257, width=768, heads=12, depth=12, length=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Gpt2Block(width, heads) for _ in range(depth))
        self.ln = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        x = dropout(x, self.training)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.ln(x), self.wte.weight).transpose(1, 2)
