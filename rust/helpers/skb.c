// SPDX-License-Identifier: GPL-2.0
/* Network buffers. */
#include <linux/skbuff.h>

struct sk_buff *weft_helper_alloc_skb(unsigned int size, gfp_t gfp)
{
	return alloc_skb(size, gfp);
}
WEFT_EXPORT(alloc_skb);

int weft_helper_skb_tailroom(const struct sk_buff *skb)
{
	return skb_tailroom(skb);
}
WEFT_EXPORT(skb_tailroom);
