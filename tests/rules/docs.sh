#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The manual pages name every command and option, and every command of the table
# answers --help. The pages are printed by the program from its tables; this looks at what came out.
. "$(dirname "$0")/common.bash"
ferry=$builddir/ferry

# "info --budget" for each option of each command
options=$("$ferry" completion --list) || exit 1
commands=$(awk '{ print $1 }' <<<"$options" | sort -u)

# names TEXT OPTION: whether it stands there as a whole word
names() { [[ $1 =~ $2([^[:alnum:]_]|$) ]]; }

in_pages() {
  local command option page='' of=''
  while read -r command option; do
    if [ "$command" != "$of" ]; then
      of=$command page=$(sed 's/\\-/-/g' "$builddir/man/ferry-$command.1" 2>&1) || echo "ferry-$command.1 is missing"
    fi
    [ -z "$option" ] || names "$page" "$option" || echo "ferry-$command.1 does not name $option"
  done <<<"$options"
  page=$(sed 's/\\-/-/g' "$builddir/man/ferry.1")
  for command in $commands; do
    names "$page" "ferry-$command" || echo "ferry.1 does not name $command"
  done
}

in_help() {
  local command option text='' of=''
  while read -r command option; do
    if [ "$command" != "$of" ]; then
      of=$command text=$("$ferry" "$command" --help) || echo "ferry $command --help fails"
      [ "$(awk 'length ($0) > 100' <<<"$text")" = "" ] || echo "ferry $command --help: a line is too long"
    fi
    [ -z "$option" ] || names "$text" "$option" || echo "ferry $command --help: no $option"
  done <<<"$options"
}

in_completion() {
  local command option text
  bash -n "$builddir/man/completion.bash" || echo "the completion is no bash"
  text=$(<"$builddir/man/completion.bash")
  while read -r command option; do
    [ -z "$option" ] || [[ $text == *"$option"* ]] || echo "$command $option"
  done <<<"$options"
}

# Files that an example names are not here: a command line that is understood fails for that, or works for a while.
examples() {
  local line status empty
  empty=$(mktemp -d)
  sed -n 's/^EXAMPLE ("[a-z-]*", "\(.*[^\\]\)",.*/\1/p' cli/examples.def | sed 's/\\"/"/g' | while read -r line; do
    status=0
    (cd "$empty" && rm -f ./* && PATH=$builddir:$PATH timeout 2 bash -c "train () { :; }; $line" >/dev/null 2>said </dev/null) || status=$?
    [ $status != 2 ] || { echo "$line"; cat "$empty/said"; }
  done
  rm -rf "$empty"
}

clean_pages() {
  command -v man >/dev/null || return 0
  local page
  for page in "$builddir"/man/*.1; do
    MANROFFSEQ='' LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l "$page" 2>&1 >/dev/null | sed "s|^|${page##*/}: |"
  done
}

folders() {
  local folder
  for folder in $layers tests; do
    [ ! -d "$folder" ] || [ -f "$folder/README.md" ] || echo "$folder/README.md is missing"
  done
}

links() { # between our own pages
  local page link
  for page in README.md $(find docs tests data contrib $layers -name '*.md'); do
    grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '^http' | while read -r link; do
      [ -e "$(dirname "$page")/$link" ] || echo "$page: $link is not there"
    done
  done
}

# Short sentences, on every page; on those that a newcomer reads first, every one.
sentences() {
  # shellcheck disable=SC2046
  awk -f tests/rules/sentences.awk README.md docs/*.md | awk '
    { page = $2; sub (/:.*/, "", page); n[page]++; words[page] += $1 }
    END { for (page in n) if (words[page] / n[page] > 17) print page ": a sentence has " words[page] / n[page] " words on the average" }'
  awk -f tests/rules/sentences.awk docs/planning.md docs/recompute.md docs/measured.md docs/words.md | awk '$1 > 20'
  for page in planning recompute; do
    [ "$(wc -w <docs/$page.md)" -le 1000 ] || echo "docs/$page.md: $(wc -w <docs/$page.md) words, more than 1000"
  done
}

# A page grows only where another one shrinks.
short() {
  local n
  n=$(cat docs/*.md | wc -w)
  [ "$n" -le 30000 ] || echo "docs/: $n words, more than 30000: say the new thing in place of an old one"
  n=$(find $layers data tests contrib -name README.md -exec cat {} + | wc -w)
  [ "$n" -le 4000 ] || echo "READMEs of folders: $n words, more than 4000"
}

claim "the manual pages name every command and option" in_pages
claim "--help names every option" in_help
claim "the completion names every option" in_completion
claim "the examples of the manual pages are understood" examples
claim "the manual pages are clean roff" clean_pages
claim "every folder says what it is" folders
claim "sentences are short" sentences
claim "links between pages lead somewhere" links
claim "docs and READMEs stay within their words" short
finish
