// SPDX-License-Identifier: GPL-2.0
/* Wait queues. */
#include <linux/sched/signal.h>
#include <linux/wait.h>

bool weft_helper_wq_has_sleeper(struct wait_queue_head *wq_head)
{
	return wq_has_sleeper(wq_head);
}
WEFT_EXPORT(wq_has_sleeper);

int weft_helper_fatal_signal_pending(struct task_struct *task)
{
	return fatal_signal_pending(task);
}
WEFT_EXPORT(fatal_signal_pending);
