// SPDX-License-Identifier: GPL-2.0
/* RDMA verbs and the connection manager: C wrappers of inline functions and macros, as in helpers.c. */
#include <linux/export.h>
#include <rdma/ib_verbs.h>

#define WEFT_HELPER __used
#define WEFT_EXPORT(name) EXPORT_SYMBOL_GPL(weft_helper_##name)

/* --- Devices --- */

const char *weft_helper_ib_name(struct ib_device *dev)
{
	return dev_name(&dev->dev);
}
WEFT_EXPORT(ib_name);

unsigned int weft_helper_ib_dma_max_seg_size(struct ib_device *dev)
{
	return ib_dma_max_seg_size(dev);
}
WEFT_EXPORT(ib_dma_max_seg_size);

/* There is no capability for it; see Limits::write_imm. */
bool weft_helper_ib_has_write_imm(struct ib_device *dev)
{
	return dev->ops.driver_id != RDMA_DRIVER_SIW;
}
WEFT_EXPORT(ib_has_write_imm);

bool weft_helper_ib_uses_virt_dma(struct ib_device *dev)
{
	return ib_uses_virt_dma(dev);
}
WEFT_EXPORT(ib_uses_virt_dma);

/* --- Memory regions --- */

u32 weft_helper_inc_rkey(u32 rkey)
{
	return ib_inc_rkey(rkey);
}
WEFT_EXPORT(inc_rkey);
