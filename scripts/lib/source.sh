# SPDX-License-Identifier: GPL-2.0
# The kernel source: Debian's linux-source package, unpacked beside the root it came through.
# shellcheck shell=bash

# The linux-source package to use, as NAME=VERSION: the preferred series, else the newest 7.x on offer. Chosen once for
# a cache, so that a newer version in the archive does not have everything built again.
source_package() {
	local memo=$WEFT_CACHE/source-package name version
	if [ ! -s "$memo" ]; then
		in_root apt-get update -qq -o APT::Update::Error-Mode=any >&2 || die "the package lists could not be fetched; check the network"
		name=$(in_root apt-cache pkgnames linux-source- |
			grep -E '^linux-source-7\.[0-9]+$' | sort -V |
			awk -v want="linux-source-$WEFT_SERIES" '$0 == want { hit = 1 } END { print hit ? want : $0 }')
		[ -n "$name" ] || die "no linux-source-7.* package in $WEFT_SUITE-backports; nothing to build a kernel from"
		[ "$name" = "linux-source-$WEFT_SERIES" ] || say "linux-source-$WEFT_SERIES is gone; taking $name"
		version=$(in_root apt-cache madison "$name" | awk -F'|' 'NR == 1 { gsub(/ /, "", $2); print $2 }')
		[ -n "$version" ] || die "apt knows no version of $name"
		printf '%s\n' "$name=$version" >"$memo.$$" && mv "$memo.$$" "$memo"
	fi
	cat "$memo"
}

source_dir() {
	local package
	package=$(source_package) || exit 1
	printf '%s\n' "$WEFT_CACHE/source-$(hash_of source-v2 "$package")"
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

# source_fetch DIR NAME=VERSION: leaves the tree in DIR/src.
source_fetch() {
	in_root bash -euc '
		cd "$1"
		[ -n "$(ls /var/lib/apt/lists)" ] || apt-get update -qq
		apt-get download "$2=$3"
		dpkg-deb --fsys-tarfile "$2"_*.deb | tar -x
		mkdir src
		tar -C src --strip-components=1 -xf usr/src/"$2".tar.xz
		rm -rf usr "$2"_*.deb' - "$1" "${2%%=*}" "${2#*=}"
}
