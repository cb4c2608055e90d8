// SPDX-License-Identifier: GPL-2.0
/* Attributes and the end of code that nothing else waits for. */
#include <linux/rcupdate.h>
#include <linux/sysfs.h>

void weft_helper_sysfs_attr_key(struct attribute *attr, struct lock_class_key *key)
{
#ifdef CONFIG_DEBUG_LOCK_ALLOC
	attr->key = key;
#endif
}
WEFT_EXPORT(sysfs_attr_key);

void weft_helper_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}
WEFT_EXPORT(synchronize_rcu_tasks);
