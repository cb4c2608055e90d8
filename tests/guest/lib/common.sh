# SPDX-License-Identifier: GPL-2.0
# What scenarios in shell have in common; source it first.
# shellcheck shell=bash
set -u

pass() { echo "PASS $1"; }
fail() { echo "FAIL $1: ${2:-see the output}"; }
skip() { echo "SKIP $1: $2"; }

debug_kernel() { [ "$WEFT_KERNEL" = debug ]; }
soak() { [ "${WEFT_MODE-}" = soak ]; }

# amount BASE DEBUG SOAK: the one that fits this run; a soak on the debug kernel is as long as the check on the other.
amount() {
	case ${WEFT_MODE-check}-$WEFT_KERNEL in
	check-base | soak-debug) echo "$1" ;;
	check-debug) echo "$2" ;;
	soak-base) echo "$3" ;;
	esac
}

# try NAME CMD...: a case that passes if CMD does; what CMD prints is shown if it fails, its last line as the reason.
try() {
	local name=$1 output status
	shift
	output=$(
		set -e
		"$@" 2>&1
	)
	status=$?
	if [ "$status" -eq 0 ]; then
		pass "$name"
	else
		[ -z "$output" ] || printf '%s\n' "$output" | tail -n 30
		fail "$name" "$(printf '%s\n' "$output" | tail -n 1) (status $status)"
	fi
	return "$status"
}

# join A B: two namespaces on one wire; A is 10.8.0.1 and fd08::1, B is 10.8.0.2 and fd08::2.
join() {
	ip -batch - <<-END
		netns add $1
		netns add $2
		link add eth0 netns $1 type veth peer name eth0 netns $2
	END
	local number=1 name
	for name; do
		# Without it an interface that goes down loses its IPv6 addresses for good.
		in_ns "$name" sysctl -qw net.ipv6.conf.all.keep_addr_on_down=1
		ip -n "$name" -batch - <<-END
			link set lo up
			address add 10.8.0.$number/24 dev eth0
			address add fd08::$number/64 dev eth0 nodad
			link set eth0 up
		END
		number=$((number + 1))
	done
}

# leave A B: they go again.
leave() {
	local name
	for name; do ip netns delete "$name"; done
}

# in_ns NAME CMD...
in_ns() { ip netns exec "$@"; }

# Ends what still runs and removes all namespaces.
tidy() {
	local name
	jobs -p | xargs -r kill 2>/dev/null
	wait
	for name in /run/netns/*; do
		[ ! -e "$name" ] || ip netns delete "${name##*/}"
	done
}
trap tidy EXIT
trap 'exit 3' TERM INT
