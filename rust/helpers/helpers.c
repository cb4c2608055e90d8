// SPDX-License-Identifier: GPL-2.0
/*
 * C wrappers of inline functions and macros, one file per C subsystem. They have the prefix weft_helper_ and are
 * exported, because rustc inlines library functions into the modules that use them. No logic lives here.
 */
#include <linux/export.h>

#define WEFT_HELPER __used
#define WEFT_EXPORT(name) EXPORT_SYMBOL_GPL(weft_helper_##name)

#include "block.c"
#include "mm.c"
#include "net.c"
#include "sock.c"
#include "sync.c"
#include "sysfs.c"
#include "tcp.c"
#include "wait.c"
#include "skb.c"
