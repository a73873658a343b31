#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Files as C arrays: plot/assets/page.css becomes `page_css`.
for file; do
  name=${file##*/}
  echo "static const unsigned char ${name//[^a-zA-Z0-9]/_}[] = {"
  od -An -v -tu1 "$file" | sed 's/\([0-9][0-9]*\)/\1,/g' || exit 1
  echo "};"
done
