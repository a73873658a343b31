# SPDX-License-Identifier: GPL-3.0-or-later
"""A CNN on made pictures: record a step, plan it for three quarters of its peak, follow the plan."""
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch import nn

import ferry_torch

width, size, batch = (int(n) for n in (sys.argv[1:4] or (32, 64, 16)))
torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(
    nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
    nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
    nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10)).to(device)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)


def step():
    x = torch.randn(batch, 3, size, size, device=device)
    y = torch.randint(0, 10, (batch,), device=device)
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


if __name__ == "__main__":
    step()
    with ferry_torch.record("cnn.json.gz", model, optimizer):
        step()
    subprocess.run(["ferry", "solve", "cnn.json.gz", "--device", "titanx-pascal", "--budget", "75%",
                    "--for", "torch", "-o", "cnn.plan.json"], check=True)
    with ferry_torch.follow("cnn.plan.json", model, optimizer) as run:
        for _ in range(5):
            print(f"loss {step().item():.4f}")
    print(run.report.text())
