/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_run.c - `crema run`: executes a command with the library preloaded.
 *
 * With --quiet it becomes the command. Otherwise it waits for the command, to print a line at the
 * end: it forwards signals, ends as the command ended, and if it is killed, so is the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/cmd/command.h"
#include "collector/cmd/run_client.h"
#include "collector/cmd/run_line.h"
#include "collector/preload/preload.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/run_name.h"

static volatile pid_t command_pid;

/* Signals from the terminal or the kernel reach the command anyway. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	int before = errno;

	(void)context;
	if (info->si_code <= 0 && command_pid > 0)
		kill(command_pid, number);
	errno = before;
}

static void take_signals(void)
{
	static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
	struct sigaction passing = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction now;
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		/* ignored signals (nohup) stay ignored, also in the command */
		if (!sigaction(numbers[i], NULL, &now) && now.sa_handler != SIG_IGN)
			sigaction(numbers[i], &passing, NULL);
	}
}

/* Ends in the same way as a process with that status. */
static int end_like(int status)
{
	struct rlimit none = {0, 0};
	sigset_t all;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none); /* the command left its own */
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&all);
	sigaddset(&all, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

static void become(char **command, int failed, pid_t parent, const sigset_t *mask)
{
	int status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(STATUS_FAILED);
	sigprocmask(SIG_SETMASK, mask, NULL);
	status = preload_exec(command);
	while (write(failed, "", 1) < 0 && errno == EINTR)
		;
	_exit(status);
}

static int run_and_wait(char **command, const char *dir, uint64_t begin_mono_ns)
{
	pid_t self = getpid(), pid;
	sigset_t all, before;
	struct run_line line;
	int failed[2], status;
	char byte;

	if (pipe2(failed, O_CLOEXEC))
		return preload_exec(command);
	run_line_begin(&line, dir);
	take_signals();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	pid = fork();
	if (!pid) {
		run_client_set(dir, begin_mono_ns);
		become(command, failed[1], self, &before);
	}
	command_pid = pid;
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(failed[1]);
	if (pid < 0) {
		if (line.path[0])
			unlink(line.path);
		return preload_exec(command);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	command_pid = 0;
	if (read(failed[0], &byte, 1) == 1)
		unlink(line.path); /* it never ran, and the reason was printed */
	else
		run_line_end(&line, pid);
	return end_like(status);
}

static int run(int argc, char **argv)
{
	uint64_t begin_mono_ns = clock_mono_ns();
	struct options options;
	char exe[PATH_MAX];
	int status;
	ssize_t n;

	if (!command_options(&cmd_run, &options, true, argc, argv, &status))
		return status;
	if (options.rest >= argc)
		return command_usage(&cmd_run);
	if (options_check_environment(SCOPE_WORKER))
		return STATUS_USAGE;
	if (options.value[OPT_redact_keys])
		setenv("CREMA_REDACT_KEYS", options.value[OPT_redact_keys], 1);
	if (options.value[OPT_name]) {
		if (!run_name_is_good(options.value[OPT_name])) {
			log_line("--name, CREMA_RUN_NAME: a name is " RUN_NAME_WORDS);
			return STATUS_USAGE;
		}
		setenv("CREMA_RUN_NAME", options.value[OPT_name], 1);
	}
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	if (!preload_prepare(exe))
		return preload_exec(argv + options.rest);
	if (!options_on(&options, OPT_quiet))
		return run_and_wait(argv + options.rest, options.value[OPT_dir], begin_mono_ns);
	run_client_set(options.value[OPT_dir], begin_mono_ns);
	return preload_exec(argv + options.rest);
}

const struct command cmd_run = {
	.name = "run",
	.usage = "run [--name NAME] [--quiet] [--redact-keys] -- COMMAND [ARGUMENT...]",
	.summary = "run a command with the library preloaded",
	.examples = "  crema run -- python analysis.py\n"
		    "  crema run --name 'ttbar, 50k chunks' -- python analysis.py\n"
		    "  crema run -- dask worker tcp://scheduler:8786\n"
		    "  CREMA_QUIET=on crema run -- python analysis.py\n",
	.scope = SCOPE_RUN,
	.run = run,
};
