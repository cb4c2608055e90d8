// SPDX-License-Identifier: GPL-2.0
#include "init.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *const environment[] = { PROGRAM_PATH, "HOME=/root", "LANG=C.UTF-8", NULL };

static void set_limits(void)
{
	static const struct rlimit files = { 65536, 65536 };
	static const struct rlimit locked = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_NOFILE, &files);
	setrlimit(RLIMIT_MEMLOCK, &locked);
}

pid_t command_start(const char *const argv[], int out, int err)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid > 0)
		return pid;

	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	set_limits();
	dup2(open("/dev/null", O_RDONLY), 0);
	dup2(out, 1);
	dup2(err, 2);
	execve(argv[0], (char *const *)argv, environment);
	_exit(127);
}

/* The status as a shell would tell it. */
int command_status(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}
