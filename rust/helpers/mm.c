// SPDX-License-Identifier: GPL-2.0
/* The memory that message payloads live in: page fragments, and pages of users. */
#include <linux/mm.h>
#include <linux/uio.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <net/sock.h>

bool weft_helper_task_frag_refill(unsigned int minimum, gfp_t gfp)
{
	return skb_page_frag_refill(minimum, &current->task_frag, gfp);
}
WEFT_EXPORT(task_frag_refill);

struct page *weft_helper_task_frag_take(unsigned int wanted, unsigned int *offset, unsigned int *length)
{
	struct page_frag *frag = &current->task_frag;

	*offset = frag->offset;
	*length = min(wanted, frag->size - frag->offset);
	get_page(frag->page);
	frag->offset += *length;
	return frag->page;
}
WEFT_EXPORT(task_frag_take);

void weft_helper_put_page(struct page *page)
{
	put_page(page);
}
WEFT_EXPORT(put_page);

bool weft_helper_user_backed_iter(const struct iov_iter *iter)
{
	return user_backed_iter(iter);
}
WEFT_EXPORT(user_backed_iter);

void *weft_helper_page_address(struct page *page)
{
	return page_address(page);
}
WEFT_EXPORT(page_address);

unsigned int weft_helper_memalloc_noio_save(void)
{
	return memalloc_noio_save();
}
WEFT_EXPORT(memalloc_noio_save);

void weft_helper_memalloc_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}
WEFT_EXPORT(memalloc_noio_restore);

unsigned long weft_helper_totalram_pages(void)
{
	return totalram_pages();
}
WEFT_EXPORT(totalram_pages);
