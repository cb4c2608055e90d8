# SPDX-License-Identifier: GPL-2.0
# Shared by the shell scripts: where things are, how a step reports, how two runs keep out of each other's way.
# shellcheck shell=bash

WEFT_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
WEFT_CACHE=${WEFT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/weft}

# The Debian suite whose compiler, bindgen and user space are used, and where kernel sources come from.
WEFT_SUITE=trixie
# Preferred kernel series; the newest 7.x on offer is taken where it is gone.
WEFT_SERIES=7.3

say() { printf '%s\n' "$*" >&2; }

# Ends the run with one sentence that says what is wrong and what to do.
die() {
	say "${0##*/}: $*"
	exit 1
}

# hash_of TEXT...: the first 12 hex digits of a digest of the arguments.
hash_of() { printf '%s\0' "$@" | sha256sum | cut -c1-12; }

# need_space DIR MIB: fails when the file system of DIR has less than MIB mebibytes free.
need_space() {
	local free
	free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$2" ] ||
		die "$2 MiB are needed under $1 but only $free MiB are free; make room or point WEFT_CACHE elsewhere"
}

# step NAME EXPECTED_SECONDS LOG CMD...: runs CMD with its output in LOG and says every 15 seconds how long it has
# taken, how long it usually takes, and what it is doing. Shows the end of LOG if CMD fails.
step() {
	local name=$1 expected=$2 log=$3 start=$SECONDS pid rc=0 next=15 last
	shift 3
	say "$name (about $expected s; log: $log)"
	"$@" >"$log" 2>&1 &
	pid=$!
	trap 'kill -- "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; exit 130' INT TERM
	while kill -0 "$pid" 2>/dev/null; do
		sleep 1
		if [ $((SECONDS - start)) -ge "$next" ]; then
			last=$(tail -n 1 "$log" | tr -d '\r' | cut -c1-60)
			say "  $((SECONDS - start)) s of about $expected s: $last"
			next=$((next + 15))
		fi
	done
	wait "$pid" || rc=$?
	trap - INT TERM
	if [ "$rc" -ne 0 ]; then
		tail -n 30 "$log" >&2
		die "$name failed with status $rc after $((SECONDS - start)) s; the whole log is in $log"
	fi
	say "  done in $((SECONDS - start)) s"
}

# locked NAME CMD...: runs CMD while no other run on this machine is inside the same NAME.
locked() {
	local name=$1
	shift
	mkdir -p "$WEFT_CACHE/locks" || die "cannot create $WEFT_CACHE; set WEFT_CACHE to a directory you can write"
	(
		exec 9>"$WEFT_CACHE/locks/$name"
		if ! flock -n 9; then
			say "waiting for another run that is preparing $name"
			flock 9
		fi
		"$@"
	)
}

# host_needs COMMAND PACKAGE...: installs what the host lacks when it can, else says what to install.
host_needs() {
	local missing=() cmd pkg
	while [ $# -gt 0 ]; do
		cmd=$1 pkg=$2
		shift 2
		command -v "$cmd" >/dev/null || missing+=("$pkg")
	done
	[ ${#missing[@]} -gt 0 ] || return 0
	[ "$(id -u)" -eq 0 ] || die "missing on this machine: run 'sudo apt-get install ${missing[*]}' first"
	command -v apt-get >/dev/null || die "missing on this machine: ${missing[*]} (a Debian host is expected)"
	say "installing host packages: ${missing[*]}"
	apt-get update -qq >&2 || die "apt-get update failed; check the network and the apt sources of this machine"
	DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >&2 ||
		die "could not install ${missing[*]}"
}
