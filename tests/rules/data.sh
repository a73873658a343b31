#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What is shipped and what is run: each file of data/ has a page that says where it comes from, and
# the digest of data/MANIFEST.
. "$(dirname "$0")/common.bash"

undescribed() {
  local file
  find data -type f ! -name '*.md' ! -name MANIFEST | sort | while read -r file; do
    grep -qF "$(basename "$file" | sed 's/^answer-.*\.schema/answer-COMMAND.schema/')" data/README.md data/*/*.md 2>/dev/null ||
      echo "$file: no page of data/ says where it comes from"
  done
}

digests() {
  [ ! -f data/MANIFEST ] || sha256sum --quiet -c data/MANIFEST
}

# trace/cards.def has what the device files have.
rates() {
  local device rate
  sed -nE 's/^CARD \(".*", "(.*)", ([0-9]+)\)$/\1 \2/p' trace/cards.def | while read -r device rate; do
    [ ! -e "data/devices/$device.json" ] || grep -q "\"memory_bytes_per_s\": $rate,*$" "data/devices/$device.json" ||
      echo "$device: trace/cards.def and its device file differ in memory_bytes_per_s"
  done
}

# Each shipped device file has a year in trace/cards.def, and each year a file.
years() {
  diff <(sed -nE 's/^RELEASED \("(.*)", .*/\1/p' trace/cards.def) <(basename -s .json data/devices/*.json | LC_ALL=C sort)
}

claim "every shipped card has its year" years
claim "cards have the memory rates of their device files" rates
claim "every file of data/ is described" undescribed
claim "data/MANIFEST holds the digests of the files" digests
finish
