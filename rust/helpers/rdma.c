// SPDX-License-Identifier: GPL-2.0
/* RDMA verbs and the connection manager: C wrappers of inline functions and macros, as in helpers.c. */
#include <linux/export.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
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

/* --- DMA --- */

void *weft_helper_rdma_kzalloc(size_t len)
{
	return kzalloc(len, GFP_KERNEL);
}
WEFT_EXPORT(rdma_kzalloc);

void weft_helper_rdma_memcpy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}
WEFT_EXPORT(rdma_memcpy);

struct page *weft_helper_rdma_alloc_zeroed_pages(unsigned int order)
{
	return alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_COMP, order);
}
WEFT_EXPORT(rdma_alloc_zeroed_pages);

void *weft_helper_rdma_page_address(struct page *page)
{
	return page_address(page);
}
WEFT_EXPORT(rdma_page_address);

u64 weft_helper_ib_dma_map_single(struct ib_device *dev, void *memory, size_t len, enum dma_data_direction dir)
{
	return ib_dma_map_single(dev, memory, len, dir);
}
WEFT_EXPORT(ib_dma_map_single);

void weft_helper_ib_dma_unmap_single(struct ib_device *dev, u64 addr, size_t len, enum dma_data_direction dir)
{
	ib_dma_unmap_single(dev, addr, len, dir);
}
WEFT_EXPORT(ib_dma_unmap_single);

u64 weft_helper_ib_dma_map_page(struct ib_device *dev, struct page *page, size_t len, enum dma_data_direction dir)
{
	return ib_dma_map_page(dev, page, 0, len, dir);
}
WEFT_EXPORT(ib_dma_map_page);

void weft_helper_ib_dma_unmap_page(struct ib_device *dev, u64 addr, size_t len, enum dma_data_direction dir)
{
	ib_dma_unmap_page(dev, addr, len, dir);
}
WEFT_EXPORT(ib_dma_unmap_page);

int weft_helper_ib_dma_mapping_error(struct ib_device *dev, u64 addr)
{
	return ib_dma_mapping_error(dev, addr);
}
WEFT_EXPORT(ib_dma_mapping_error);

void weft_helper_ib_dma_sync_single_for_cpu(struct ib_device *dev, u64 addr, size_t len, enum dma_data_direction dir)
{
	ib_dma_sync_single_for_cpu(dev, addr, len, dir);
}
WEFT_EXPORT(ib_dma_sync_single_for_cpu);

void weft_helper_ib_dma_sync_single_for_device(struct ib_device *dev, u64 addr, size_t len,
					       enum dma_data_direction dir)
{
	ib_dma_sync_single_for_device(dev, addr, len, dir);
}
WEFT_EXPORT(ib_dma_sync_single_for_device);

int weft_helper_ib_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents, enum dma_data_direction dir)
{
	return ib_dma_map_sg(dev, sg, nents, dir);
}
WEFT_EXPORT(ib_dma_map_sg);

void weft_helper_ib_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
				 enum dma_data_direction dir)
{
	ib_dma_unmap_sg(dev, sg, nents, dir);
}
WEFT_EXPORT(ib_dma_unmap_sg);

u64 weft_helper_rdma_sg_dma_address(struct scatterlist *sg)
{
	return sg_dma_address(sg);
}
WEFT_EXPORT(rdma_sg_dma_address);

u32 weft_helper_rdma_sg_dma_len(struct scatterlist *sg)
{
	return sg_dma_len(sg);
}
WEFT_EXPORT(rdma_sg_dma_len);

void weft_helper_rdma_sg_fill_mapped(struct scatterlist *sg, struct page *page, u32 len, u64 addr)
{
	sg_set_page(sg, page, len, 0);
	sg_dma_address(sg) = addr;
	sg_dma_len(sg) = len;
}
WEFT_EXPORT(rdma_sg_fill_mapped);

void weft_helper_rdma_sg_set_mapped(struct scatterlist *sg, struct page *page, u32 len, u64 addr)
{
	sg_init_table(sg, 1);
	weft_helper_rdma_sg_fill_mapped(sg, page, len, addr);
}
WEFT_EXPORT(rdma_sg_set_mapped);

/* --- Queues --- */

int weft_helper_ib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	return ib_post_send(qp, wr, bad);
}
WEFT_EXPORT(ib_post_send);

int weft_helper_ib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	return ib_post_recv(qp, wr, bad);
}
WEFT_EXPORT(ib_post_recv);

bool weft_helper_ib_has_drain(struct ib_qp *qp)
{
	return qp->device->ops.drain_sq || qp->device->ops.drain_rq;
}
WEFT_EXPORT(ib_has_drain);

/* --- Memory regions --- */

void weft_helper_ib_next_key(struct ib_mr *mr)
{
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
}
WEFT_EXPORT(ib_next_key);
