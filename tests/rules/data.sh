#!/bin/bash
# What data/ ships: each file is in its list of sources with the digest it has.
. "$(dirname "$0")/common.bash"

undescribed() {
  local file
  find data -type f ! -name README.md ! -name MANIFEST | sort | while read -r file; do
    grep -qF "$(basename "$file")" data/README.md data/*/README.md 2>/dev/null ||
      echo "$file: no README of data/ says where it comes from"
  done
}

digests() {
  [ ! -f data/MANIFEST ] || sha256sum --quiet -c data/MANIFEST
}

claim "every file of data/ is described" undescribed
claim "data/MANIFEST holds the digests of the files" digests
finish
