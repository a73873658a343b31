# SPDX-License-Identifier: GPL-3.0-or-later
"""An LSTM language model on made letters, with everything in one call."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch

width, length, batch = (int(n) for n in (sys.argv[1:4] or (128, 48, 32)))
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(96, width), nn.LSTM(width, width, 2, batch_first=True)
        self.out = nn.Linear(width, 96)

    def forward(self, x):
        return self.out(self.lstm(self.embed(x))[0]).transpose(1, 2)


model = LanguageModel().to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)


def step():
    text = torch.randint(0, 96, (batch, length + 1), device=device)
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(text[:, :-1]), text[:, 1:])
    loss.backward()
    optimizer.step()
    return loss.detach()


if __name__ == "__main__":
    with ferry_torch.fit(model, optimizer, budget="70%"):
        for _ in range(8):
            print(f"loss {step().item():.4f}")
