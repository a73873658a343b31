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

LIMIT = 600  # seconds; they wait for each other


def said_by_all(folder, count, *kinds):
    """The lines of each process."""
    ranks = [subprocess.Popen([sys.executable, os.path.join(HERE, "rank.py"), str(rank), str(count), folder, *kinds], text=True,
                              env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
             for rank in range(count)]
    try:
        for rank in ranks:
            out, err = rank.communicate(timeout=LIMIT)
            assert rank.returncode == 0, err[-3000:]
            yield [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    finally:
        for rank in ranks:
            rank.kill()


KINDS = {"Replica": "all_reduce", "Viewed": "all_reduce", "Shard": "all_gather"}
COLLECTIVES = {"Replica": "allreduce_", "Viewed": "allreduce_", "Shard": "_allgather_base_"}


def learn_the_same(folder, count, *kinds):
    told = list(said_by_all(folder, count, *kinds))
    assert len(told) == count, told
    for rows in told:
        assert [row["kind"] for row in rows] == list(kinds), rows
        for row in rows:
            assert row["same"] and row["unmatched"] == [0, 0] and row["steps"] == [19, 17], row
            assert row["out"] > 0 and row["followed"] > 0, row["text"]
            assert COLLECTIVES[row["kind"]] in row["collectives"], row["collectives"]
            assert KINDS[row["kind"]] in {kind for kind, _, _ in row["met"]}, row["met"]
            assert all(group and size > 0 for _, group, size in row["met"]), row["met"]
        assert [row["met"] for row in rows] == [row["met"] for row in told[0]], "the ranks' collectives differ"


def test_two_processes_learn_the_same(folder):
    learn_the_same(folder, 2, *COLLECTIVES)


def test_four_replicas_learn_the_same(folder):
    learn_the_same(folder, 4, "Replica")


def test_four_shards_learn_the_same(folder):
    learn_the_same(folder, 4, "Shard")


def test_updates_are_not_moved_in_each_process(folder):
    for said, in said_by_all(folder, 2, "updates"):
        assert "several processes" in said["said"], said


def test_flat_shards_are_refused(folder):
    class FullyShardedDataParallel(torch.nn.Sequential):
        """As torch calls what fully_shard has replaced."""
    model = FullyShardedDataParallel(torch.nn.Linear(4, 4))
    refused(lambda: ferry_torch.fit(model, OPTIMIZERS["sgd"](model.parameters()), "1GiB").__enter__(), "fully_shard")
