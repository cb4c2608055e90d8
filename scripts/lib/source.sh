# SPDX-License-Identifier: GPL-2.0
# The kernel source: Debian's linux-source package, unpacked beside the root it came through.
# shellcheck shell=bash

# Name of the linux-source package to use: the preferred series, else the newest 7.x on offer.
source_package() {
	local memo=$WEFT_CACHE/source-package-$(root_key) name
	if [ ! -s "$memo" ]; then
		in_root apt-get update -qq >&2 || die "the package lists could not be fetched; check the network"
		name=$(in_root apt-cache pkgnames linux-source- |
			grep -E '^linux-source-7\.[0-9]+$' | sort -V |
			awk -v want="linux-source-$WEFT_SERIES" '$0 == want { hit = 1 } END { print hit ? want : $0 }')
		[ -n "$name" ] || die "no linux-source-7.* package in $WEFT_SUITE-backports; nothing to build a kernel from"
		printf '%s\n' "$name" >"$memo.$$" && mv "$memo.$$" "$memo"
		[ "$name" = "linux-source-$WEFT_SERIES" ] || say "linux-source-$WEFT_SERIES is gone; taking $name"
	fi
	cat "$memo"
}

source_dir() {
	local package
	package=$(source_package) || exit 1
	printf '%s\n' "$WEFT_CACHE/source-$(hash_of source-v1 "$(root_key)" "$package")"
}

source_make() {
	local dir tmp package
	dir=$(source_dir) || exit 1
	package=$(source_package) || exit 1
	[ -e "$dir/.complete" ] && return 0
	need_space "$WEFT_CACHE" 3000
	tmp=$(mktemp -d "$WEFT_CACHE/.source.XXXXXX")
	step "kernel source ($package)" 60 "$WEFT_CACHE/source.log" source_fetch "$tmp" "$package"
	touch "$tmp/src/.complete"
	rm -rf "$dir"
	mv "$tmp/src" "$dir"
	rm -rf "$tmp"
}

# source_fetch DIR PACKAGE: leaves the tree in DIR/src.
source_fetch() {
	in_root bash -euc '
		cd "$1"
		apt-get download "$2"
		dpkg-deb --fsys-tarfile "$2"_*.deb | tar -x
		mkdir src
		tar -C src --strip-components=1 -xf usr/src/"$2".tar.xz
		rm -rf usr "$2"_*.deb' - "$1" "$2"
}
