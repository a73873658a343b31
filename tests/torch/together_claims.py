# SPDX-License-Identifier: GPL-3.0-or-later
"""Several processes that train one model, each by a plan of its own: the same bits as without."""
import json
import os
import subprocess
import sys

import torch

import ferry_torch
from common import HERE
from nets import OPTIMIZERS
from trap_claims import refused

COUNT = int(os.environ.get("FERRY_TORCH_RANKS", 2))
LIMIT = 240  # seconds; they wait for each other


def said_by_all(folder):
    """The lines of each process."""
    ranks = [subprocess.Popen([sys.executable, os.path.join(HERE, "rank.py"), str(rank), str(COUNT), folder], text=True,
                              env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for rank in range(COUNT)]
    try:
        for rank in ranks:
            out, err = rank.communicate(timeout=LIMIT)
            assert rank.returncode == 0, err[-3000:]
            yield [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    finally:
        for rank in ranks:
            rank.kill()


def test_processes_that_train_together_learn_the_same(folder):
    wanted = {"Replica": "allreduce_", "Viewed": "allreduce_", "Shard": "_allgather_base_"}
    for rows in said_by_all(folder):
        updates = rows.pop()
        assert "several processes" in updates["said"], updates
        assert [row["kind"] for row in rows] == list(wanted), rows
        for row in rows:
            assert row["same"] and row["unmatched"] == [0, 0] and row["steps"] == [19, 17], row
            assert row["out"] > 0 and row["followed"] > 0, row["text"]
            assert wanted[row["kind"]] in row["collectives"], row["collectives"]


def test_flat_shards_are_refused(folder):
    class FullyShardedDataParallel(torch.nn.Sequential):
        """As torch calls what fully_shard has replaced."""
    model = FullyShardedDataParallel(torch.nn.Linear(4, 4))
    refused(lambda: ferry_torch.fit(model, OPTIMIZERS["sgd"](model.parameters()), "1GiB").__enter__(), "fully_shard")
