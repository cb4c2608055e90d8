// SPDX-License-Identifier: GPL-2.0
/* RDMA verbs and the connection manager: C wrappers of inline functions and macros, as in helpers.c. */
#include <linux/export.h>
#include <rdma/ib_verbs.h>

#define WEFT_HELPER __used
#define WEFT_EXPORT(name) EXPORT_SYMBOL_GPL(weft_helper_##name)

u32 weft_helper_inc_rkey(u32 rkey)
{
	return ib_inc_rkey(rkey);
}
WEFT_EXPORT(inc_rkey);
