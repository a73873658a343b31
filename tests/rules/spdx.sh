#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Every source that git knows has the line of its licence; `tests/spdx.sh` puts it in.
set -u
cd "${srcdir:-.}" || exit 1
git ls-files >/dev/null 2>&1 || { echo "no git checkout: skipped"; exit 77; }
found=$(bash tests/spdx.sh --check) && { echo "1 passed, 0 failed"; exit 0; }
echo "$found"
echo "0 passed, 1 failed"
exit 1
