/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The first process of a guest, linked statically and started from an initramfs: a guest boots twice as fast with it
 * as with a shell script, because every program that a script starts is slow under emulation.
 *
 *   mounts.c	the root, with a tmpfs over it, and everything else that is mounted
 *   job.c	what the host wants, read from the control port
 *   command.c	starts and ends the command
 *   main.c	the loop between the host and the command
 *   util.c	writing, and the ends of a guest
 */
#ifndef WEFT_INIT_H
#define WEFT_INIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define RUN "/run/weft"
#define PROGRAM_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* Ports to the host, in the order of their numbers. */
enum port { CONTROL, OUT, ERR, PORTS };

/* A folder of the host that is mounted at its own path. */
struct share {
	char *tag;
	char *path;
	bool writable;
};

#define MAX_SHARES 32

struct job {
	/* Ends the output on both output ports; nothing else can contain it. */
	char *token;
	/* The project, which is also one of the shares. */
	char *project;
	/* What becomes /lib/modules/VERSION; its last part is the version. */
	char *modules;
	/* Shell text for the script that starts the command. */
	char *settings;
	/* Look for leaked memory after the command. */
	bool leakcheck;
	struct share shares[MAX_SHARES];
	size_t share_count;
};

void write_all(int fd, const char *data, size_t size);
void write_file(const char *path, const char *text);
_Noreturn void power_off(void);
/* Says on the kernel log, which the host reads, why there can be no guest, and powers off. */
_Noreturn void die(const char *what);

void mount_root(void);
void mount_system(void);
void mount_shares(const struct job *job);
void link_modules(const struct job *job);

void job_read(struct job *job, int control);

/* Starts a program in a session of its own, with these two descriptors as its output. */
pid_t command_start(const char *const argv[], int out, int err);
int command_status(int wait_status);

#endif
