#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The claims of ferry_torch that take long, once in the end-to-end run: plans with recompute and with moved
# updates train the same bits, the examples' recorded traces are those of the examples, the page's recipes run, and
# each network has its row in the table that a GPU fills. Processes that train together learn the same bits.
FERRY_TORCH_CLAIMS="again_claims inductor_claims budgets_claims together_claims early_claims data_claims page_claims rows_claims" exec bash "$(dirname "$0")/torch.sh" "$@"
