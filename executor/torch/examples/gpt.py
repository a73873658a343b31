# SPDX-License-Identifier: GPL-3.0-or-later
"""A small GPT, recorded without a GPU for one that is not here: what would a step take on an H200?"""
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch

width, length, blocks = (int(n) for n in (sys.argv[1:4] or (128, 128, 4)))
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        b, t, c = x.shape
        q, k, v = (s.view(b, t, 4, c // 4).transpose(1, 2) for s in self.qkv(x).split(c, 2))
        weights = F.softmax(q @ k.transpose(-2, -1) * (c // 4) ** -0.5, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


model = nn.Sequential(nn.Embedding(256, width), *(Block() for _ in range(blocks)),
                      nn.Linear(width, 256)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), 3e-4)


def step(batch=8):
    text = torch.randint(0, 256, (batch, length + 1), device=device)
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(text[:, :-1]).transpose(1, 2), text[:, 1:])
    loss.backward()
    optimizer.step()
    return loss.detach()


if __name__ == "__main__":
    step()
    with ferry_torch.record("gpt.json.gz", model, optimizer, device="h200"):
        step()
    subprocess.run(["ferry", "info", "gpt.json.gz"], check=True)
    subprocess.run(["ferry", "curve", "gpt.json.gz", "--device", "h200", "--points", "5"], check=True)
