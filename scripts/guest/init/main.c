// SPDX-License-Identifier: GPL-2.0
/*
 * Messages on the control port, one a line:
 *   the host says	go: start the command; stop: end it; peer: the other guest is ready; off: power off
 *   the guest says	up: ready for go; ready: see weft-ready; status N: the command has ended
 */
#include "init.h"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Seconds between the polite and the final end of a command. */
#define STOP_SECONDS 3

struct guest {
	struct job job;
	int ports[PORTS];
	/* Read and write ends of the pipes that the command writes into, by port. */
	int pipes[PORTS][2];
	/* What programs in the guest want to say to the host, and what tells the command to start. */
	int say;
	int go;
	int children;
	pid_t command;
	pid_t leakcheck;
	int status;
	/* When a command that was asked to end is killed; 0 if it was not asked. */
	time_t kill_at;
};

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

static int open_fifo(const char *path)
{
	int fd = -1;

	if (mkfifo(path, 0600) == 0)
		fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		die(path);
	return fd;
}

/* The kernel finds the ports on its own time. */
static void open_ports(struct guest *guest)
{
	for (int port = 0; port < PORTS; port++) {
		char path[32];

		snprintf(path, sizeof(path), "/dev/vport0p%d", port + 1);
		while (access(path, F_OK) < 0)
			usleep(1000);
		guest->ports[port] = open(path, O_RDWR | O_CLOEXEC);
		if (guest->ports[port] < 0)
			die(path);
	}
}

/* The command writes into pipes, because a port can be opened only once and scripts open /dev/stderr as they like. */
static void open_channels(struct guest *guest)
{
	sigset_t child;

	mkdir(RUN, 0755);
	guest->say = open_fifo(RUN "/say");
	guest->go = open_fifo(RUN "/go");
	for (int port = OUT; port <= ERR; port++)
		if (pipe2(guest->pipes[port], O_CLOEXEC) < 0)
			die("pipe");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	guest->children = signalfd(-1, &child, SFD_CLOEXEC);
}

static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		die("lo");
	close(fd);
}

static void start(struct guest *guest)
{
	char script[4200];

	snprintf(script, sizeof(script), "%s/scripts/guest/session", guest->job.project);
	write_file(RUN "/settings", guest->job.settings);
	const char *const argv[] = { "/bin/sh", script, NULL };

	guest->command = command_start(argv, guest->pipes[OUT][1], guest->pipes[ERR][1]);
}

/* Reports the end: behind what is in the pipes now come the tokens, and then the status. */
static void finish(struct guest *guest)
{
	char text[32];

	for (int port = OUT; port <= ERR; port++) {
		int left = 0;

		ioctl(guest->pipes[port][0], FIONREAD, &left);
		while (left > 0) {
			char data[4096];
			ssize_t n = read(guest->pipes[port][0], data, (size_t)left < sizeof(data) ? (size_t)left : sizeof(data));

			if (n <= 0)
				break;
			write_all(guest->ports[port], data, n);
			left -= n;
		}
		write_all(guest->ports[port], guest->job.token, strlen(guest->job.token));
	}
	snprintf(text, sizeof(text), "status %d\n", guest->status);
	write_all(guest->ports[CONTROL], text, strlen(text));
}

/* The command has ended; a look for leaks may still come before that is reported. */
static void command_ended(struct guest *guest, int wait_status)
{
	char script[4200];

	guest->status = command_status(wait_status);
	if (!guest->job.leakcheck) {
		finish(guest);
		return;
	}
	snprintf(script, sizeof(script), "%s/scripts/guest/bin/weft-leakcheck", guest->job.project);
	const char *const argv[] = { "/bin/sh", script, NULL };

	guest->leakcheck = command_start(argv, guest->pipes[ERR][1], guest->pipes[ERR][1]);
}

static void reap(struct guest *guest)
{
	struct signalfd_siginfo info;
	int wait_status;
	pid_t pid;

	read(guest->children, &info, sizeof(info));
	while ((pid = waitpid(-1, &wait_status, WNOHANG)) > 0) {
		if (pid == guest->command)
			command_ended(guest, wait_status);
		else if (pid == guest->leakcheck)
			finish(guest);
	}
}

static void obey(struct guest *guest, const char *word)
{
	if (strcmp(word, "go") == 0) {
		write_all(guest->go, "\n", 1);
	} else if (strcmp(word, "peer") == 0) {
		write_file(RUN "/peer-ready", "");
	} else if (strcmp(word, "stop") == 0) {
		kill(-guest->command, SIGTERM);
		guest->kill_at = now() + STOP_SECONDS;
	} else if (strcmp(word, "off") == 0) {
		kill(-1, SIGKILL);
		power_off();
	}
}

static void listen_to_host(struct guest *guest)
{
	static char line[64];
	static size_t length;
	char data[64];
	ssize_t n = read(guest->ports[CONTROL], data, sizeof(data));

	for (ssize_t i = 0; i < n; i++) {
		if (data[i] != '\n' && length < sizeof(line) - 1) {
			line[length++] = data[i];
			continue;
		}
		line[length] = '\0';
		length = 0;
		obey(guest, line);
	}
}

static void pass_on(int from, int to)
{
	static char data[65536];
	ssize_t n = read(from, data, sizeof(data));

	if (n > 0)
		write_all(to, data, n);
}

static void serve(struct guest *guest)
{
	struct pollfd fds[] = {
		{ guest->ports[CONTROL], POLLIN, 0 }, { guest->say, POLLIN, 0 }, { guest->children, POLLIN, 0 },
		{ guest->pipes[OUT][0], POLLIN, 0 },  { guest->pipes[ERR][0], POLLIN, 0 },
	};

	if (poll(fds, sizeof(fds) / sizeof(fds[0]), guest->kill_at ? 100 : -1) < 0)
		return;
	if (fds[0].revents & POLLIN)
		listen_to_host(guest);
	if (fds[1].revents & POLLIN)
		pass_on(guest->say, guest->ports[CONTROL]);
	if (fds[3].revents & POLLIN)
		pass_on(guest->pipes[OUT][0], guest->ports[OUT]);
	if (fds[4].revents & POLLIN)
		pass_on(guest->pipes[ERR][0], guest->ports[ERR]);
	if (fds[2].revents & POLLIN)
		reap(guest);
	if (guest->kill_at && now() >= guest->kill_at) {
		kill(-guest->command, SIGKILL);
		guest->kill_at = 0;
	}
}

int main(void)
{
	static struct guest guest;

	mount_root();
	mount_system();
	loopback_up();
	open_ports(&guest);
	job_read(&guest.job, guest.ports[CONTROL]);
	mount_shares(&guest.job);
	link_modules(&guest.job);
	open_channels(&guest);
	start(&guest);
	for (;;)
		serve(&guest);
}
