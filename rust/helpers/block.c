// SPDX-License-Identifier: GPL-2.0
/* Block devices: requests, disks and bios. */
#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/fs_struct.h>
#include <linux/hdreg.h>
#include <linux/sched.h>

static const unsigned int WEFT_BLK_OPEN_READ __maybe_unused = (__force unsigned int)BLK_OPEN_READ;
static const unsigned int WEFT_BLK_OPEN_WRITE __maybe_unused = (__force unsigned int)BLK_OPEN_WRITE;

static const unsigned int WEFT_BLK_FEAT_WRITE_CACHE __maybe_unused = (__force unsigned int)BLK_FEAT_WRITE_CACHE;
static const unsigned int WEFT_BLK_FEAT_FUA __maybe_unused = (__force unsigned int)BLK_FEAT_FUA;
static const unsigned int WEFT_BLK_FEAT_ROTATIONAL __maybe_unused = (__force unsigned int)BLK_FEAT_ROTATIONAL;
static const unsigned int WEFT_BLK_FEAT_STABLE_WRITES __maybe_unused = (__force unsigned int)BLK_FEAT_STABLE_WRITES;

static const unsigned char WEFT_BLK_STS_NOTSUPP __maybe_unused = (__force unsigned char)BLK_STS_NOTSUPP;
static const unsigned char WEFT_BLK_STS_IOERR __maybe_unused = (__force unsigned char)BLK_STS_IOERR;
static const unsigned char WEFT_BLK_STS_RESOURCE __maybe_unused = (__force unsigned char)BLK_STS_RESOURCE;
static const unsigned char WEFT_BLK_STS_AGAIN __maybe_unused = (__force unsigned char)BLK_STS_AGAIN;
static const unsigned char WEFT_BLK_STS_DM_REQUEUE __maybe_unused = (__force unsigned char)BLK_STS_DM_REQUEUE;

static const unsigned int WEFT_REQ_OP_MASK __maybe_unused = (__force unsigned int)REQ_OP_MASK;
static const unsigned int WEFT_REQ_SYNC __maybe_unused = (__force unsigned int)REQ_SYNC;
static const unsigned int WEFT_REQ_FUA __maybe_unused = (__force unsigned int)REQ_FUA;
static const unsigned int WEFT_REQ_PREFLUSH __maybe_unused = (__force unsigned int)REQ_PREFLUSH;
static const unsigned int WEFT_REQ_NOUNMAP __maybe_unused = (__force unsigned int)REQ_NOUNMAP;
static const unsigned int WEFT_REQ_NOWAIT __maybe_unused = (__force unsigned int)REQ_NOWAIT;
static const unsigned int WEFT_REQ_POLLED __maybe_unused = (__force unsigned int)REQ_POLLED;

static const unsigned int WEFT_BLK_MAX_BLOCK_SIZE __maybe_unused = BLK_MAX_BLOCK_SIZE;
static const unsigned int WEFT_BIO_MAX_SIZE __maybe_unused = BIO_MAX_SIZE;
static const unsigned int WEFT_GFP_NOIO __maybe_unused = (__force unsigned int)GFP_NOIO;
static const unsigned int WEFT_DISK_MAX_MINORS __maybe_unused = MINORMASK + 1;

/*
 * What stands first in the private data of a request. The timeout callback goes through C because its return type is
 * an enum, which control-flow integrity tells from the integer that Rust has for it.
 */
struct weft_request_head {
	unsigned int (*timeout)(struct request *rq);
};

enum blk_eh_timer_return weft_helper_blk_timeout(struct request *rq)
{
	struct weft_request_head *head = blk_mq_rq_to_pdu(rq);

	return head->timeout(rq) ? BLK_EH_RESET_TIMER : BLK_EH_DONE;
}
WEFT_EXPORT(blk_timeout);

unsigned short weft_helper_blk_rq_nr_phys_segments(struct request *rq)
{
	return blk_rq_nr_phys_segments(rq);
}
WEFT_EXPORT(blk_rq_nr_phys_segments);

int weft_helper_blk_rq_map_sg(struct request *rq, struct scatterlist *sglist)
{
	return blk_rq_map_sg(rq, sglist);
}
WEFT_EXPORT(blk_rq_map_sg);

unsigned short weft_helper_req_get_ioprio(struct request *rq)
{
	return req_get_ioprio(rq);
}
WEFT_EXPORT(req_get_ioprio);

int weft_helper_rq_read_tag(struct request *rq)
{
	return READ_ONCE(rq->tag);
}
WEFT_EXPORT(rq_read_tag);

struct blk_mq_hw_ctx *weft_helper_queue_hctx(struct request_queue *q, int id)
{
	return queue_hctx(q, id);
}
WEFT_EXPORT(queue_hctx);

unsigned int weft_helper_blk_mq_freeze_queue(struct request_queue *q)
{
	return blk_mq_freeze_queue(q);
}
WEFT_EXPORT(blk_mq_freeze_queue);

void weft_helper_blk_mq_unfreeze_queue(struct request_queue *q, unsigned int memflags)
{
	blk_mq_unfreeze_queue(q, memflags);
}
WEFT_EXPORT(blk_mq_unfreeze_queue);

void weft_helper_queue_limits_start_update(struct request_queue *q, struct queue_limits *lim)
{
	*lim = queue_limits_start_update(q);
}
WEFT_EXPORT(queue_limits_start_update);

bool weft_helper_tag_set_is_used(struct blk_mq_tag_set *set)
{
	bool used;

	mutex_lock(&set->tag_list_lock);
	used = !list_empty(&set->tag_list);
	mutex_unlock(&set->tag_list_lock);
	return used;
}
WEFT_EXPORT(tag_set_is_used);

#ifdef CONFIG_DEBUG_KOBJECT_RELEASE
bool weft_helper_disk_queue_released(struct gendisk *disk)
{
	return !kref_read(&disk->queue_kobj.kref) && !work_busy(&disk->queue_kobj.release.work);
}
WEFT_EXPORT(disk_queue_released);
#endif

struct kobject *weft_helper_disk_kobj(struct gendisk *disk)
{
	return &disk_to_dev(disk)->kobj;
}
WEFT_EXPORT(disk_kobj);

unsigned int weft_helper_disk_openers(struct gendisk *disk)
{
	return disk_openers(disk);
}
WEFT_EXPORT(disk_openers);

sector_t weft_helper_get_capacity(struct gendisk *disk)
{
	return get_capacity(disk);
}
WEFT_EXPORT(get_capacity);

bool weft_helper_get_disk_ro(struct gendisk *disk)
{
	return get_disk_ro(disk);
}
WEFT_EXPORT(get_disk_ro);

void weft_helper_set_geometry(struct hd_geometry *geo, unsigned char heads, unsigned char sectors,
			      unsigned short cylinders)
{
	geo->heads = heads;
	geo->sectors = sectors;
	geo->cylinders = cylinders;
}
WEFT_EXPORT(set_geometry);

/* A kernel thread has no root directory of its own. */
struct file *weft_helper_bdev_file_open_by_path(const char *path, blk_mode_t mode)
{
	if (!(current->flags & PF_KTHREAD))
		return bdev_file_open_by_path(path, mode, NULL, NULL);
	scoped_with_init_fs()
		return bdev_file_open_by_path(path, mode, NULL, NULL);
	unreachable();
}
WEFT_EXPORT(bdev_file_open_by_path);

struct gendisk *weft_helper_bdev_disk(struct block_device *bdev)
{
	return bdev->bd_disk;
}
WEFT_EXPORT(bdev_disk);

unsigned int weft_helper_bdev_dev(struct block_device *bdev)
{
	return bdev->bd_dev;
}
WEFT_EXPORT(bdev_dev);

int weft_helper_bdev_name(struct block_device *bdev, char *buf, size_t size)
{
	return scnprintf(buf, size, "%pg", bdev);
}
WEFT_EXPORT(bdev_name);

bool weft_helper_bdev_read_only(struct block_device *bdev)
{
	return bdev_read_only(bdev);
}
WEFT_EXPORT(bdev_read_only);

sector_t weft_helper_bdev_nr_sectors(struct block_device *bdev)
{
	return bdev_nr_sectors(bdev);
}
WEFT_EXPORT(bdev_nr_sectors);

sector_t weft_helper_bdev_start_sector(struct block_device *bdev)
{
	return bdev_is_partition(bdev) ? bdev->bd_start_sect : 0;
}
WEFT_EXPORT(bdev_start_sector);

struct queue_limits *weft_helper_bdev_limits(struct block_device *bdev)
{
	return bdev_limits(bdev);
}
WEFT_EXPORT(bdev_limits);

int weft_helper_bdev_discard_alignment(struct block_device *bdev)
{
	return bdev_discard_alignment(bdev);
}
WEFT_EXPORT(bdev_discard_alignment);

bool weft_helper_bdev_write_cache(struct block_device *bdev)
{
	return bdev_write_cache(bdev);
}
WEFT_EXPORT(bdev_write_cache);

void weft_helper_cond_resched(void)
{
	cond_resched();
}
WEFT_EXPORT(cond_resched);
