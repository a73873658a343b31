#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# The steps of Containerfile, one by one, in roots that debootstrap makes instead of images: a container without
# a container daemon. Needs root, debootstrap and a Debian mirror
# (FERRY_MIRROR, or the one that apt uses); else it is skipped.
. "$(dirname "$0")/rules/common.bash"
scratch
mirror=${FERRY_MIRROR:-$(apt-get indextargets --format '$(SITE)' 2>/dev/null | sort | uniq -c | sort -rn | awk 'NR == 1 { print $2 }')}
[ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null && [ -n "$mirror" ] ||
  { echo "root, debootstrap and a mirror are not here"; exit 77; }
unset MAKEFLAGS MFLAGS MAKELEVEL
base=$work/base place= stages=0
declare -A stage
made() { debootstrap --variant=minbase bookworm "$base" "$mirror" >log 2>&1 || { tail -n 5 log; return 1; }; }

enter() { # COMMAND in the stage's root, at its working directory
  chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    sh -c "cd '${place:-/}' && $1"
}
step() { # INSTRUCTION ARGUMENTS
  local word=$1 rest=$2 from
  case $word in
    FROM)
      root=$work/root-$((++stages)) place=/
      cp -a "$base" "$root" && stage[${rest##* }]=$root && cp /etc/resolv.conf "$root/etc/" ;;
    RUN) enter "$rest" >log 2>&1 || { tail -n 20 log; return 1; } ;;
    WORKDIR) place=$rest; mkdir -p "$root$rest" ;;
    COPY)
      case $rest in
        --from=*)
          read -r from what to <<<"${rest#--from=}"
          cp -a "${stage[$from]}$what/." "$root$to/" ;;
        *)
          read -r what to <<<"$rest"
          mkdir -p "$root$to" && (cd "$srcdir" && { git ls-files -z 2>/dev/null || find . -type f -print0; } |
            tar -c --null -T - -f -) | tar -x -C "$root$to" -f - ;;
      esac ;;
    ENTRYPOINT) entry=$(grep -oE '[a-z]+' <<<"$rest" | head -n 1) ;;
    *) echo "no such instruction here: $word"; return 1 ;;
  esac
}
steps() {
  local word rest
  while read -r word rest; do
    step "$word" "$rest" || { echo "does not work: $word $rest"; return 1; }
  done < <(grep -v '^#' "$srcdir/Containerfile" | sed -e ':a' -e '/\\$/N; s/\\\n *//; ta' | grep .)
  printf '%s %s %s\n' "$root" "$place" "$entry" >"$work/left" # each claim is a shell of its own
}
works() {
  local root place entry
  read -r root place entry <"$work/left" || return 1
  enter "$entry version && $entry zoo -q vgg16 --batch 8 -d v100 -o step.json && $entry info step.json -b 8GiB &&
    $entry solve step.json -b 60% -o plan.json && $entry check step.json plan.json" >log 2>&1 || { tail -n 20 log; return 1; }
}
small() {
  local root place entry
  read -r root place entry <"$work/left" && ! enter "command -v gcc"
}
claim "an empty Debian is made" made
claim "each step of the container file works there" steps
claim "what it leaves plans" works
claim "no compiler is left in it" small
finish
