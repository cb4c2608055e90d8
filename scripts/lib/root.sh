# SPDX-License-Identifier: GPL-2.0
# The toolchain root: a Debian system in a directory, named after a hash of what goes into it.
# shellcheck shell=bash

root_packages() { sed 's/#.*//' "$WEFT_TOP/scripts/sdk.packages" | xargs -n1 | sort -u; }

root_key() { hash_of root-v2 "$WEFT_SUITE" "$(root_packages)" "$(id -u | grep -c '^0$')"; }

# The versions of everything that decides what a kernel build makes; written when the root is made.
root_toolchain() {
	local root
	root=$(root_dir)
	[ -e "$root/.complete" ] || die "the toolchain root is not there yet; run scripts/sdk"
	cat "$root/.toolchain"
}

root_dir() { printf '%s\n' "$WEFT_CACHE/root-$(root_key)"; }

# The Debian mirror the host itself uses, as apt tells it; every Debian mirror carries all suites.
root_mirror() {
	apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
		awk -F'|' '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
}

# Proxy settings of the host's apt, as mmdebstrap options.
root_aptopts() {
	apt-config dump 2>/dev/null |
		awk '/^Acquire::(http|https|ftp)::Proxy/ { printf "--aptopt=%s\n", $0 }'
}

root_make() {
	local root tmp mirror arch opts=()
	root=$(root_dir)
	[ -e "$root/.complete" ] && return 0
	arch=$(uname -m)
	[ "$arch" = x86_64 ] || die "this is a $arch machine; the SDK is prepared for x86_64 only"
	host_needs mmdebstrap mmdebstrap
	[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || host_needs no-such-keyring debian-archive-keyring
	mirror=$(root_mirror)
	if [ -z "$mirror" ] && [ "$(id -u)" -eq 0 ]; then
		apt-get update -qq >&2 || true
		mirror=$(root_mirror)
	fi
	[ -n "$mirror" ] || die "apt knows no Debian mirror; run 'apt-get update' with a Debian source configured"
	need_space "$WEFT_CACHE" 6000
	mapfile -t opts < <(root_aptopts)
	tmp=$(mktemp -d "$WEFT_CACHE/.root.XXXXXX")
	step "toolchain root ($WEFT_SUITE)" 90 "$WEFT_CACHE/root.log" root_bootstrap "$tmp/root" "$mirror" "${opts[@]}"
	touch "$tmp/root/.complete"
	rm -rf "$root"
	mv "$tmp/root" "$root"
	rmdir "$tmp"
}

# root_bootstrap DIR MIRROR [mmdebstrap option...]
root_bootstrap() {
	local dir=$1 mirror=$2 tar
	shift 2
	local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	local common=(--variant=apt --include="$(root_packages | paste -sd,)" --keyring="$keyring"
		--aptopt='APT::Install-Recommends "false"' "$@")
	local sources=("deb $mirror $WEFT_SUITE main" "deb $mirror $WEFT_SUITE-backports main")
	if [ "$(id -u)" -eq 0 ]; then
		mmdebstrap --mode=root "${common[@]}" "$WEFT_SUITE" "$dir" "${sources[@]}"
	else
		# Owners other than the caller cannot be kept by an ordinary user; the guests do not need them.
		tar=$dir.tar
		mmdebstrap --mode=unshare "${common[@]}" "$WEFT_SUITE" "$tar" "${sources[@]}"
		mkdir -p "$dir"
		tar -C "$dir" --no-same-owner --exclude='./dev/*' -xf "$tar"
		rm -f "$tar"
	fi
	local share=(--mount)
	[ "$(id -u)" -eq 0 ] || share+=(--user --map-root-user)
	unshare "${share[@]}" chroot "$dir" /usr/bin/bash -c \
		'for p in rustc clang bindgen ld.lld pahole make; do "$p" --version | head -n 1; done' >"$dir/.toolchain"
}
