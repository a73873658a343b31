# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that measures on a GPU runs here tiny: every way has its row, and trains what it should."""
import json
import os
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "../gpu")]

import torch_ladder
import torch_rows

SAME_BITS = ("ferry", "ferry, some made again", "fit", "greedy-largest", "save_on_cpu")
PLANNED = (*SAME_BITS[:-1], "compiled", "captured")
WAYS = ("ferry", "ferry, some made again", "compiled", "captured", "fit", "checkpoint every 1", "save_on_cpu",
        "activation_memory_budget", "half batch", "greedy-largest", "checkpoint every 2", "checkpoint every 4")


def look_at(made, shares, ways=WAYS):
    """The ways that have a time."""
    free = made["rows"][0]
    assert free["way"] == "no limit" and len(made["rows"]) == 1 + len(shares) * len(ways)
    done = []
    for row, way in zip(made["rows"][1:], ways * len(shares)):
        assert row["way"] == way and row["budget_bytes"] == made["peak_bytes"] * row["share"] // 100, row
        assert ("failed" in row) != ("step_ns" in row), row
        if "failed" in row:
            assert row["failed"], row
            continue
        done.append(way)
        if way in SAME_BITS:
            assert row["sum"] == free["sum"], (made["net"], row, free)
        if way in PLANNED:
            assert row["report"]["peak_bytes"][0] <= row["budget_bytes"], row
    return done


def test_each_way_has_a_row(folder):
    made = torch_rows.table("unet", tiny=True, shares=(80,), seconds=2)
    assert look_at(made, (80,)) == list(WAYS), made


def test_each_network_is_planned(folder):
    for net in torch_rows.NETS:
        made = torch_rows.table(net, tiny=True, shares=(80,), seconds=2, wanted=("ferry", "half batch"))
        assert look_at(made, (80,), ("ferry", "half batch")) == ["ferry", "half batch"][:2 - (net == "gpt-32k")], made


def test_the_command_writes_all_shares_until_its_time_is_over(folder):
    for minutes, done in (("9", 4), ("0", 0)):
        result = os.path.join(folder, "unet.json")
        subprocess.run([sys.executable, torch_rows.__file__, "unet", result, "--tiny", "--seconds", "2", "--ways", "save_on_cpu",
                        "--minutes", minutes], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(result) as file:
            assert len(look_at(json.load(file), torch_rows.SHARES, ("save_on_cpu",))) == done


def test_each_rung_trains_the_same_and_has_ferry_beside_it(folder):
    place = torch_rows.Place(True)
    made = torch_ladder.ladder(place, os.environ["FERRY"], rungs=1)
    assert [row["way"] for row in made["rows"]] == ["by hand", *torch_ladder.WAYS]
    by_hand, eager, compiled, captured, run = made["rows"]
    for row in (eager, compiled, captured):
        assert row["tokens_per_s"] > 0 and row["report"]["peak_bytes"][0] <= row["budget_bytes"], row
    assert "CUDA" in run["failed"] and by_hand["sum"] == eager["sum"], made
    for rung in torch_ladder.RUNGS[1:]:
        assert torch_ladder.attempt(rung, None, place)["sum"] == by_hand["sum"], rung
