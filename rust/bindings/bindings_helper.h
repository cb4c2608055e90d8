/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The C headers that hold what this tree uses and kernel::bindings lacks. hrtimer_types.h comes first, as in the
 * kernel's own list: bindgen needs its enum defined before it is named.
 */
#include <linux/hrtimer_types.h>

#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sysctl.h>
#include <linux/workqueue.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/route.h>
#include <net/sock.h>
#include <net/tcp.h>

#include "../rds/rds_events.h"
