# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/pytorch.md shows what the examples print."""
import torch

import page

MADE_BY = "1.13"  # another torch has other ops below autograd


def test_every_block_of_the_page_is_what_its_example_prints(folder):
    assert set(page.blocks()) == {"gpt", "cnn", "lstm"}, set(page.blocks())
    if not torch.__version__.startswith(MADE_BY):
        return print(f"the page is made by torch {MADE_BY}: only its blocks were looked at")
    wrong = [line for name in page.blocks() for line in page.check(name)]
    assert not wrong, "\n".join(wrong) + "\ntests/torch/page.py writes them anew"


def test_what_the_machine_does_not_decide_is_compared(folder):
    shown = ["loss 2.2852", "out         24.21 MiB    24.21 MiB", "packs 20 followed, 0 unmatched", "step 2.2 s"]
    for at, line in enumerate(["loss 2.4001", "out         48.21 MiB    24.21 MiB", "packs 20 followed, 3 unmatched",
                               "pace 2.2 s"]):
        other = shown[:at] + [line] + shown[at + 1:]
        assert len(page.differences("cnn", shown, other)) == 1, line
    assert not page.differences("cnn", shown, ["loss 2.2860", "out 24.3 MiB 24.20 MiB", "packs 21 followed, 0 unmatched",
                                               "step 448 ms"])
    near = ["160 ms in 48.0 MiB, and no plan is faster", "bound 160 ms certified by compute; it covers every plan"]
    above = ["81.7 ms in 48.0 MiB, at most 0.07 % above what any plan that only swaps can reach",
             "bound 81.6 ms certified by flow-lp; it covers every plan without sections and recompute"]
    assert not page.differences("cnn", near, above) and len(page.differences("gpt", near, above)) == 2
    assert page.differences("cnn", near, ["160 ms in 96.0 MiB, and no plan is faster", above[1]])
    assert page.differences("gpt", ["step 2.2 s"], ["step 2.3 s"]) and page.differences("cnn", shown, shown + ["more"])
