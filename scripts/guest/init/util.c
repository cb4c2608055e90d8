// SPDX-License-Identifier: GPL-2.0
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

void write_all(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t n = write(fd, data, size);

		if (n < 0)
			return;
		data += n;
		size -= n;
	}
}

void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	if (fd < 0)
		die(path);
	write_all(fd, text, strlen(text));
	close(fd);
}

void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

void die(const char *what)
{
	char text[4400];
	int length = snprintf(text, sizeof(text), "<3>weft-init: %s: %s\n", what, strerror(errno));
	int log = open("/dev/kmsg", O_WRONLY);

	write_all(log, text, length);
	power_off();
}
