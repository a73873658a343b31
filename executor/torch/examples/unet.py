# SPDX-License-Identifier: GPL-3.0-or-later
"""A U-Net on made pictures, within a budget."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch

width, size, batch = (int(n) for n in (sys.argv[1:4] or (16, 64, 8)))
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"


def twice(inner, outer):
    return nn.Sequential(nn.Conv2d(inner, outer, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(outer, outer, 3, padding=1), nn.ReLU())


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.middle = twice(3, width), twice(width, 2 * width), twice(2 * width, 4 * width)
        self.up2, self.up1 = (nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                              nn.ConvTranspose2d(2 * width, width, 2, 2))
        self.join2, self.join1 = twice(4 * width, 2 * width), twice(2 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        x = self.up2(self.middle(F.max_pool2d(b, 2)))
        x = self.join2(torch.cat([x, b], 1))
        return self.out(self.join1(torch.cat([self.up1(x), a], 1)))


model = Unet().to(device)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)


def step():
    x = torch.randn(batch, 3, size, size, device=device)
    y = torch.randint(0, 2, (batch, size, size), device=device)
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


if __name__ == "__main__":
    with ferry_torch.fit(model, optimizer, budget="65%"):
        for _ in range(6):
            print(f"loss {step().item():.4f}")
