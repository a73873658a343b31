#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Debian's packages: made from the tarball, read by lintian, unpacked into an empty root, and tried there by
# the session that autopkgtest would run.
. "$(dirname "$0")/rules/common.bash"
scratch
for it in dpkg-buildpackage dh lintian pkgconf; do
  command -v $it >/dev/null || { echo "$it is not here"; exit 77; }
done
unset MAKEFLAGS MFLAGS MAKELEVEL
made() {
  "${MAKE:-make}" -s -C "$builddir" dist >log 2>&1 && tar -xf "$builddir"/ferry-*.tar.zst && cd ferry-*/ &&
    DEB_BUILD_OPTIONS="parallel=$(nproc) nocheck noopt" dpkg-buildpackage -b -us -uc >../log 2>&1 && cd .. || { tail -n 30 "$work/log"; return 1; }
}
said() { lintian --allow-root --fail-on error,warning ferry_*.changes 2>&1 | grep -v '^running with root'; [ "${PIPESTATUS[0]}" = 0 ]; }
tried() {
  local package root=$work/root triplet
  for package in ferry_*.deb libferry0_*.deb libferry-dev_*.deb; do dpkg-deb -x "$package" root || return 1; done
  triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  unset FERRY_DATADIR FERRY_EMU
  PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$root/usr/lib/$triplet PKG_CONFIG_PATH=$root/usr/lib/$triplet/pkgconfig \
    PKG_CONFIG_SYSROOT_DIR=$root sh ferry-*/debian/tests/session >log 2>&1 || { tail -n 30 log; return 1; }
}
claim "the packages are made" made
claim "lintian has nothing to say" said
claim "what they install plans, proves and is linked" tried
finish
