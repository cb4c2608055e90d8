# SPDX-License-Identifier: GPL-2.0
# Verified traffic between the namespaces that `join` has made; source it after common.sh.
# shellcheck shell=bash

# traffic 4|6 COUNT OPTIONS...: both sides send COUNT messages to each other and verify what they receive.
traffic() {
	local family=$1 count=$2 a=10.8.0.1 b=10.8.0.2
	shift 2
	[ "$family" = 4 ] || { a=fd08::1 b=fd08::2; }
	set -- --count "$count" --timeout 120 --seed "${WEFT_SEED-1}" "$@"
	in_ns one rds-traffic peer --local $a --peer $b "$@" >/tmp/traffic.one 2>&1 &
	local first=$! status=0
	in_ns two rds-traffic peer --local $b --peer $a "$@" >/tmp/traffic.two 2>&1 || status=$?
	wait $first || status=$?
	[ $status -eq 0 ] || cat /tmp/traffic.one /tmp/traffic.two
	return $status
}
