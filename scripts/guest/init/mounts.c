// SPDX-License-Identifier: GPL-2.0
#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define P9_OPTIONS "trans=virtio,version=9p2000.L,msize=262144,"
/* What one side writes is seen by the other at the next open. */
#define COHERENT P9_OPTIONS "cache=mmap"
/* Nothing changes there while a guest runs. */
#define CACHED P9_OPTIONS "cache=loose"

struct mount_point {
	const char *type;
	const char *target;
	unsigned long flags;
	const char *options;
};

static const struct mount_point system_mounts[] = {
	{ "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
	{ "sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL },
	{ "debugfs", "/sys/kernel/debug", 0, NULL },
	{ "tracefs", "/sys/kernel/tracing", 0, NULL },
	{ "configfs", "/sys/kernel/config", 0, NULL },
	{ "cgroup2", "/sys/fs/cgroup", 0, NULL },
	{ "devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666" },
	{ "tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777" },
	{ "mqueue", "/dev/mqueue", 0, NULL },
	{ "tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=755" },
	{ "tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777" },
};

static const char *const links[][2] = {
	{ "/proc/self/fd", "/dev/fd" },
	{ "fd/0", "/dev/stdin" },
	{ "fd/1", "/dev/stdout" },
	{ "fd/2", "/dev/stderr" },
};

/* Makes a directory and those above it. */
static void make_path(const char *path)
{
	char part[4096];

	for (size_t n = 1; path[n - 1] != '\0' && n < sizeof(part); n++) {
		if (path[n] != '/' && path[n] != '\0')
			continue;
		memcpy(part, path, n);
		part[n] = '\0';
		mkdir(part, 0755);
	}
}

static void attach(const char *source, const char *target, const char *type, unsigned long flags, const char *options)
{
	make_path(target);
	if (mount(source, target, type, flags, options) == 0)
		return;
	int error = errno;
	char what[4200];

	snprintf(what, sizeof(what), "mount of %s at %s", source, target);
	errno = error;
	die(what);
}

/* Enters the root with a tmpfs over it: all of it can be written, and nothing of that reaches the host. */
void mount_root(void)
{
	attach("dev", "/dev", "devtmpfs", MS_NOSUID, "mode=755");
	attach("root", "/lower", "9p", MS_RDONLY, CACHED);
	attach("upper", "/over", "tmpfs", 0, "mode=755");
	make_path("/over/upper");
	make_path("/over/work");
	attach("root", "/new", "overlay", 0, "lowerdir=/lower,upperdir=/over/upper,workdir=/over/work");
	attach("/dev", "/new/dev", NULL, MS_MOVE, NULL);
	if (chdir("/new") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
		die("change of the root");
}

void mount_system(void)
{
	for (size_t i = 0; i < sizeof(system_mounts) / sizeof(system_mounts[0]); i++) {
		const struct mount_point *point = &system_mounts[i];

		attach(point->type, point->target, point->type, point->flags, point->options);
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (symlink(links[i][0], links[i][1]) < 0)
			die(links[i][1]);
}

void mount_shares(const struct job *job)
{
	for (size_t i = 0; i < job->share_count; i++) {
		const struct share *share = &job->shares[i];

		attach(share->tag, share->path, "9p", share->writable ? 0 : MS_RDONLY,
		       share->writable ? COHERENT : CACHED);
	}
}

void link_modules(const struct job *job)
{
	char path[4096];

	make_path("/lib/modules");
	snprintf(path, sizeof(path), "/lib/modules%s", strrchr(job->modules, '/'));
	if (symlink(job->modules, path) < 0)
		die(path);
}
