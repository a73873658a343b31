# SPDX-License-Identifier: GPL-3.0-or-later
"""The recorded traces that ferry ships plan at 60 % of their peak."""
import glob
import json
import os

from common import HERE, ferry


def test_recorded_examples_plan_at_60_percent(folder):
    found = sorted(glob.glob(os.path.join(HERE, "../../data/traces/torch-*.json.gz")))
    assert len(found) == 4, found
    for trace in found:
        plan = os.path.join(folder, "plan.json")
        said = json.loads(ferry("solve", trace, "-d", "h200", "--for", "torch", "--budget", "60%",
                                "--gap", "1000%", "--json", "-o", plan))
        assert said["predicted"]["peak_bytes"] <= said["budget_bytes"], trace
        ferry("check", trace, plan)
