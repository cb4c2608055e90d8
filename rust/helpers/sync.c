// SPDX-License-Identifier: GPL-2.0
/* Locks, work queues, per-CPU data, clocks. */
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/sched/clock.h>
#include <linux/spinlock.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

void weft_helper_spin_lock_bh(spinlock_t *lock)
{
	spin_lock_bh(lock);
}
WEFT_EXPORT(spin_lock_bh);

int weft_helper_spin_trylock_bh(spinlock_t *lock)
{
	return spin_trylock_bh(lock);
}
WEFT_EXPORT(spin_trylock_bh);

void weft_helper_spin_unlock_bh(spinlock_t *lock)
{
	spin_unlock_bh(lock);
}
WEFT_EXPORT(spin_unlock_bh);

void weft_helper_lockdep_assert_held(spinlock_t *lock)
{
	lockdep_assert_held(lock);
}
WEFT_EXPORT(lockdep_assert_held);

void weft_helper_init_delayed_work(struct delayed_work *work, work_func_t func, const char *name,
				   struct lock_class_key *key, const char *timer_name,
				   struct lock_class_key *timer_key)
{
	__init_work(&work->work, 0);
	work->work.data = (atomic_long_t)WORK_DATA_INIT();
	lockdep_init_map(&work->work.lockdep_map, name, key, 0);
	INIT_LIST_HEAD(&work->work.entry);
	work->work.func = func;
	timer_init_key(&work->timer, delayed_work_timer_fn, TIMER_IRQSAFE, timer_name, timer_key);
}
WEFT_EXPORT(init_delayed_work);

bool weft_helper_queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay)
{
	return queue_delayed_work(wq, work, delay);
}
WEFT_EXPORT(queue_delayed_work);

struct workqueue_struct *weft_helper_alloc_workqueue(const char *name, unsigned int flags, int max_active)
{
	return alloc_workqueue("%s", flags, max_active, name);
}
WEFT_EXPORT(alloc_workqueue);

u64 __percpu *weft_helper_alloc_percpu_u64(size_t count)
{
	if (count > PCPU_MIN_UNIT_SIZE / sizeof(u64))
		return NULL;
	return __alloc_percpu(count * sizeof(u64), __alignof__(u64));
}
WEFT_EXPORT(alloc_percpu_u64);

void weft_helper_this_cpu_add_u64(u64 __percpu *cell, u64 value)
{
	this_cpu_add(*cell, value);
}
WEFT_EXPORT(this_cpu_add_u64);

u64 weft_helper_percpu_sum_u64(u64 __percpu *cell)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(cell, cpu));
	return sum;
}
WEFT_EXPORT(percpu_sum_u64);

u64 weft_helper_local_clock(void)
{
	return local_clock();
}
WEFT_EXPORT(local_clock);

unsigned long weft_helper_jiffies(void)
{
	return jiffies;
}
WEFT_EXPORT(jiffies);

u32 weft_helper_get_random_u32(void)
{
	return get_random_u32();
}
WEFT_EXPORT(get_random_u32);
