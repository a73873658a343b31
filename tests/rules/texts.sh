#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Text is printed, never parsed: what the program decides on is an enum, a number or a flag. So
# whoever looks into a text stands in texts.list, with whose text it is.
. "$(dirname "$0")/common.bash"
list=tests/rules/texts.list
looks='\b(strstr|strncmp|strncasecmp|strcasestr|strpbrk|strspn|strcspn|strtok|sscanf|fnmatch|regexec)\b *\('

unlisted() {
  grep -lE "$looks" $(sources) | grep -vxFf <(grep -v '^#' $list | cut -d: -f1)
  return 0
}

stale() {
  local file
  grep -v '^#' $list | cut -d: -f1 | while read -r file; do
    grep -qE "$looks" "$file" 2>/dev/null || echo "$file looks into no text"
  done
}

# Texts of certificates and of errors are nobody's to read.
own_words() {
  grep -nE "(strstr|strncmp|strn?casecmp|strcasestr|strcmp) \([^;]*(covers|\.confidence|\.doubt|err(or)?\.text|err->text|why->text)" $(sources)
  return 0
}

claim "whoever looks into a text is listed, with whose it is ($list)" unlisted
claim "$list lists nobody else" stale
claim "nobody looks into what a certificate, a doubt or an error says" own_words
finish
