# SPDX-License-Identifier: GPL-2.0
# The two kernels: configured from the fragments in scripts/kernel, built outside the source tree.
# shellcheck shell=bash

# kernel_fragments base|debug: the merged configuration fragment.
kernel_fragments() {
	cat "$WEFT_TOP/scripts/kernel/base.config"
	[ "$1" = base ] || cat "$WEFT_TOP/scripts/kernel/$1.config"
}

kernel_dir() {
	local package toolchain
	package=$(source_package) || exit 1
	toolchain=$(root_toolchain) || exit 1
	printf '%s\n' "$WEFT_CACHE/$1-$(hash_of kernel-v2 "$package" "$toolchain" \
		"$(kernel_fragments "$1" | sed 's/#.*//' | sort)")"
}

kernel_make() {
	local which=$1 dir expected=600
	dir=$(kernel_dir "$which") || exit 1
	[ -e "$dir/.complete" ] && return 0
	[ "$which" = base ] || expected=1000
	need_space "$WEFT_CACHE" 6000
	mkdir -p "$dir"
	kernel_fragments "$which" >"$dir/fragment"
	step "kernel $which" "$expected" "$dir/build.log" kernel_build "$(source_dir)" "$dir"
	touch "$dir/.complete"
}

# kernel_build SOURCE DIR: configures, builds and installs the modules under DIR/mods. An interrupted build goes on
# where it stopped; the mark that makes it count is set by the caller.
kernel_build() {
	in_root bash -euc '
		src=$1 dir=$2
		export KBUILD_BUILD_TIMESTAMP="Thu Jan  1 00:00:00 UTC 2026" KBUILD_BUILD_USER=weft KBUILD_BUILD_HOST=weft
		k() { make -s -C "$src" O="$dir" LLVM=1 -j"$(nproc)" "$@"; }
		if ! [ -e "$dir/.config" ] || ! cmp -s "$dir/fragment" "$dir/fragment.done"; then
			k KCONFIG_ALLCONFIG="$dir/fragment" allnoconfig
			cp "$dir/fragment" "$dir/fragment.done"
		fi
		make -C "$src" O="$dir" LLVM=1 -j"$(nproc)" bzImage modules
		rm -rf "$dir/mods"
		k INSTALL_MOD_PATH="$dir/mods" modules_install
		cp "$dir/.config" "$dir/config.used"
		' - "$1" "$2"
}
