# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that measures on a GPU runs here tiny: every way has its row, and trains what it should."""
import json
import os
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../gpu")]

import torch_rows

SAME_BITS = ("ferry", "ferry, some made again", "greedy-largest", "fit", "save_on_cpu")
WAYS = SAME_BITS + ("half batch",) + tuple(f"checkpoint every {n}" for n in torch_rows.EVERY)


def look_at(made, shares):
    free = made["rows"][0]
    assert free["way"] == "no limit" and len(made["rows"]) == 1 + len(shares) * len(WAYS)
    done = 0
    for row, way in zip(made["rows"][1:], WAYS * len(shares)):
        assert row["way"] == way and row["budget_bytes"] == made["peak_bytes"] * row["share"] // 100, row
        assert ("failed" in row) != ("step_ns" in row), row
        if "failed" in row:
            assert row["failed"], row
            continue
        done += 1
        if way in SAME_BITS:
            assert row["sum"] == free["sum"], (made["net"], row, free)
        if "ferry" in way or way in ("greedy-largest", "fit"):
            assert row["report"]["peak_bytes"][0] <= row["budget_bytes"], row
    return done


def test_each_network_has_a_row_for_each_way(folder):
    for net in torch_rows.NETS:
        made = torch_rows.table(net, tiny=True, shares=(80,), seconds=2)
        assert look_at(made, (80,)) >= 5, made
        halved = next(row for row in made["rows"] if row["way"] == "half batch")
        assert ("failed" in halved) == (net == "gpt-32k"), halved


def test_the_command_writes_all_shares(folder):
    result = os.path.join(folder, "unet.json")
    subprocess.run([sys.executable, torch_rows.__file__, "unet", result, "--tiny", "--seconds", "2"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(result) as file:
        assert look_at(json.load(file), torch_rows.SHARES) > 0
