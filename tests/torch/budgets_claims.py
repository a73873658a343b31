# SPDX-License-Identifier: GPL-3.0-or-later
"""A budget of the backend holds, beside torch's own: what is promised where activation_memory_budget has known faults."""
import functools
import unittest.mock

from torch import nn

import budgets


def test_a_budget_holds_and_no_random_op_runs_again(folder):
    """A lower share of torch may give a higher peak (pytorch 197838), more than it allows (197871), and draw random numbers
    again (190758). Here each peak is seen below its budget, with the losses of the step that keeps all."""
    made = budgets.table("cnn", (0.7, 0.5))
    whole = made["rows"][0]
    rows = [row for row in made["rows"] if row["way"].startswith("ferry, ") and row["budget_bytes"]]
    assert len(rows) == 4
    for row in rows:
        own = next(r for r in made["rows"] if r["way"] == "activation_memory_budget" and r["share"] == row["share"])
        assert not row["said"] and row["predicted_bytes"] <= row["budget_bytes"], row
        assert row["peak_bytes"] <= own["peak_bytes"] < whole["peak_bytes"], row
        assert row["losses"] == whole["losses"] and row["again_random"] == 0, row
        assert row["again_bytes"] < own["again_bytes"], (row, own)
        assert (row["carried_bytes"] > 0) == (row["way"] == "ferry, both") or row["again_bytes"] > 0, row


def test_what_the_way_back_alone_needs_is_made_there(folder):
    """Without a limit no more is kept than by torch's own partition of what it is given."""
    made = budgets.table("cnn", ())
    assert made["rows"][1]["peak_bytes"] <= made["rows"][0]["peak_bytes"], made
    assert made["rows"][1]["again_bytes"] == 0 and made["rows"][1]["losses"] == made["rows"][0]["losses"], made


def test_what_one_remake_needs_is_not_kept_for_the_next(folder):
    """A plan of remakes saves as much of the peak as it says."""
    whole = budgets.measured("gpt", budgets.partitioners.default_partition)
    most = budgets.by_ferry("gpt", "100%", "off")
    row = budgets.by_ferry("gpt", most["predicted_bytes"] * 77 // 100, "only")
    assert whole["peak_bytes"] - row["peak_bytes"] >= most["predicted_bytes"] - row["predicted_bytes"] > 0, (whole, most, row)
    assert row["losses"] == whole["losses"], row


class Alone(nn.Module):
    """With its loss within the graph, so that the graph's peak is the step's."""

    def __init__(self):
        super().__init__()
        self.net = budgets.nets.Unet(12)

    def forward(self, x):
        return self.net(x).square().mean(1)


def test_a_prediction_is_what_is_seen(folder):
    """With the workspaces of convolutions. What the graph does not have, as the optimizer's state, is there in every step."""
    nets = {**budgets.NETS, "alone": (Alone, budgets.NETS["unet"][1])}
    with unittest.mock.patch.object(budgets, "NETS", nets), \
            unittest.mock.patch.object(budgets.Job, "__init__", functools.partialmethod(budgets.Job.__init__, loss=lambda out, y: out.mean())):
        budgets.learn_workspaces("alone")
        most = budgets.by_ferry("alone", "100%", "off")
        beside = most["peak_bytes"] - most["predicted_bytes"]
        assert 0 <= beside < most["predicted_bytes"] * 0.05, most
        for recompute in ("off", "only"):
            row = budgets.by_ferry("alone", most["predicted_bytes"] * 85 // 100, recompute)
            seen = row["peak_bytes"] - beside
            assert row["predicted_bytes"] * 0.97 <= seen <= row["predicted_bytes"] * 1.01, (row, beside)
