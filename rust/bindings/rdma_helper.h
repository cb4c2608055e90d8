/* SPDX-License-Identifier: GPL-2.0 */
/* The C headers of RDMA; see bindings_helper.h. */
#include <linux/hrtimer_types.h>

#include <rdma/ib_verbs.h>
#include <rdma/mr_pool.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>
