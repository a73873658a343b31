#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The claims of ferry_torch that take long, once in the end-to-end run: plans with recompute and with moved
# updates train the same bits, and the examples' recorded traces are those of the examples.
FERRY_TORCH_CLAIMS="again_claims early_claims data_claims" exec bash "$(dirname "$0")/torch.sh" "$@"
