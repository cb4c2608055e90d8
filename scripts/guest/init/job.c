// SPDX-License-Identifier: GPL-2.0
#include "init.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SIZE (1 << 20)

static void read_exactly(int fd, char *buffer, size_t size)
{
	while (size > 0) {
		ssize_t n = read(fd, buffer, size);

		if (n <= 0)
			die("read of the job");
		buffer += n;
		size -= n;
	}
}

static size_t read_size(int control)
{
	char digits[16];
	size_t n = 0;

	do
		read_exactly(control, &digits[n], 1);
	while (digits[n] != '\n' && ++n < sizeof(digits) - 1);
	digits[n] = '\0';
	return strtoul(digits, NULL, 10);
}

/* A share is "rw TAG PATH" or "ro TAG PATH". */
static void add_share(struct job *job, char *text)
{
	struct share *share = &job->shares[job->share_count++];

	share->writable = strncmp(text, "rw ", 3) == 0;
	share->tag = text + 3;
	share->path = strchr(share->tag, ' ');
	if (!share->path)
		die("share without a path");
	*share->path++ = '\0';
}

static void set(struct job *job, const char *name, char *value)
{
	errno = EINVAL;
	if (strcmp(name, "token") == 0)
		job->token = value;
	else if (strcmp(name, "project") == 0)
		job->project = value;
	else if (strcmp(name, "modules") == 0)
		job->modules = value;
	else if (strcmp(name, "settings") == 0)
		job->settings = value;
	else if (strcmp(name, "leakcheck") == 0)
		job->leakcheck = true;
	else if (strcmp(name, "share") == 0 && job->share_count < MAX_SHARES)
		add_share(job, value);
	else
		die(name);
}

/* The job is its size in a line, and then as many bytes of NAME=VALUE, each ended by a zero byte. */
void job_read(struct job *job, int control)
{
	size_t size = read_size(control);
	char *text = size < MAX_SIZE ? malloc(size + 1) : NULL;

	if (!text)
		die("size of the job");
	read_exactly(control, text, size);
	text[size] = '\0';
	for (char *item = text, *next; item < text + size; item = next) {
		char *value = strchr(item, '=');

		if (!value)
			die("job");
		next = value + strlen(value) + 1;
		*value++ = '\0';
		set(job, item, value);
	}
	if (!job->token || !job->project || !job->modules || !job->settings)
		die("incomplete job");
}
