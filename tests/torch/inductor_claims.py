# SPDX-License-Identifier: GPL-3.0-or-later
"""The backend for torch.compile, where it takes longer: inductor, which needs a C++ compiler on the CPU, and many budgets."""
import os
import shutil

import torch

import ferry_torch
from common import same
from compile_claims import learns_the_same_with_late_copies, trained
from nets import NETS, Transformer, letters


def test_statistics_change_on_the_way_there(folder):
    """Inductor's graph writes them itself, and a pass without a way back changes them too. Copies are back
    before the views of them."""
    if not shutil.which(os.environ.get("CXX", "g++")):
        return print("no C++ compiler: inductor is not tried")
    torch._dynamo.reset()
    make, batches = NETS["cnn"]
    torch.manual_seed(1)
    plain, planned, said = make(), make(), []
    planned.load_state_dict(plain.state_dict())
    step = torch.compile(planned, backend=ferry_torch.backend("85%", say=said.append), dynamic=False)
    for n in range(2):
        plain(batches(n)[0])
        made = step(batches(n)[0])
        for a, b in zip(plain.buffers(), planned.buffers()):
            assert torch.allclose(a, b, atol=1e-4), f"{n}: {a} {b}"
    made.sum().backward()
    assert len(said) == 1 and "without a budget" not in said[0], said


def test_inductor_learns_the_same_within_a_budget(folder):
    if not shutil.which(os.environ.get("CXX", "g++")):
        return print("no C++ compiler: inductor is not tried")
    whole, reports, said = trained("transformer", "100%", inner="inductor")
    for recompute in ("off", "auto"):
        result, seen, said = trained("transformer", "85%", recompute, inner="inductor")
        assert same(whole, result), f"{recompute}: other bits"
        assert seen and seen[0]["peak_bytes"] < reports[0]["peak_bytes"], said


def test_a_convolution_that_is_carried_has_the_strides_of_the_graph(folder):
    """Inductor would lay it out anew, and what comes back would be read in another order."""
    if not shutil.which(os.environ.get("CXX", "g++")):
        return print("no C++ compiler: inductor is not tried")
    whole = trained("cnn", "100%", steps=1, inner="inductor")[0]
    result, seen, said = trained("cnn", "80%", "off", steps=1, inner="inductor")
    assert same(whole, result) and seen[0]["d2h_bytes"] > 0, said


def test_a_copy_that_ends_late_is_waited_for_by_inductor(folder):
    if not shutil.which(os.environ.get("CXX", "g++")):
        return print("no C++ compiler: inductor is not tried")
    learns_the_same_with_late_copies("inductor", 3)


def test_smaller_budgets_are_kept_and_never_faster(folder):
    """Faults of torch's activation_memory_budget: not monotone (pytorch 197838), above its capacity (197871), random ops
    made again (190758). The networks have dropout, so what is drawn anew would be another loss."""
    tied = (lambda: Transformer(tied=True)), letters(24)
    for net in (*map(NETS.get, ("cnn", "transformer", "unet")), tied):
        whole, reports, said = trained(net, "100%", steps=2)
        peak, steps = reports[0]["peak_bytes"], []
        for percent in (95, 90, 85, 80, 75):
            budget = peak * percent // 100
            result, seen, said = trained(net, budget, steps=2)
            assert same(whole, result), f"{net} {percent}: other bits"
            if not seen:
                assert "no plan fits" in said[0], said
                break
            assert seen[0]["peak_bytes"] <= budget, f"{net} {percent}: {seen[0]} of {budget}"
            steps.append(seen[0]["step_ns"])
        assert len(steps) > 1 and steps == sorted(steps), f"{net}: {steps}"
