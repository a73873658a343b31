# SPDX-License-Identifier: GPL-3.0-or-later
"""A followed step costs the host little. Python calls are counted, so no machine decides."""
import lean

MOST = 7500


def test_a_followed_step_makes_few_calls(folder):
    for name, plan, share in (("resnet50", "swaps", 0.7), ("resnet50", "remakes", 0.8), ("gpt", "swaps", 0.6),
                              ("unet", "remakes", 0.6), ("lstm", "swaps", 0.6)):
        calls, followed, report = lean.compare(name, plan, share, steps=0)
        assert calls < followed <= MOST, f"{name} {plan}: {calls} calls plain, {followed} followed"
        assert report.out_bytes + report.bytes_again > 0 and report.unmatched == 0, report.text()


def test_modules_of_which_nothing_moves_are_left_alone(folder):
    job, path = lean.planned(folder, lean.NETS["resnet50"], ("--recompute", "only"), 0.9)
    with lean.ferry_torch.follow(path, job.model, job.optimizer):
        watched = [module for module in job.model.modules() if "forward" in module.__dict__]
        assert 0 < len(watched) < len(list(job.model.modules())) / 2, len(watched)
