/* SPDX-License-Identifier: BSD-3-Clause */
/* process.c - one process of /proc. */
#include "collector/doctor/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/preload/program.h"
#include "common/dirs.h"
#include "common/procfs.h"
#include "common/view.h"
#include "wire.h"

#define LIBRARY "/libcrema.so"

static const char *string_at(const struct buf *b, size_t i)
{
	const char *at = (const char *)b->data, *end = at + b->len;

	for (; at && at < end && *at; at += strlen(at) + 1)
		if (!i--)
			return at;
	return NULL;
}

const char *process_word(const struct process *p, size_t i)
{
	return string_at(&p->words, i);
}

const char *process_env(const struct process *p, const char *name)
{
	size_t n = strlen(name);
	const char *v;

	for (size_t i = 0; (v = string_at(&p->environ, i)); i++)
		if (!strncmp(v, name, n) && v[n] == '=')
			return v + n + 1;
	return NULL;
}

/* The path at the end of a line of maps. */
static void path_of(const char *line, char *out, size_t size)
{
	const char *from = strchr(line, '/');

	snprintf(out, size, "%.*s", from ? (int)strcspn(from, "\n") : 0, from ? from : "");
}

static void look_at_maps(struct process *p)
{
	struct buf maps = BUF_INIT;
	const char *line, *next;

	if (procfs_slurp_all(&maps, "/proc/%d/maps", (int)p->pid)) {
		p->hidden = true;
		buf_release(&maps);
		return;
	}
	for (line = (const char *)maps.data; line && *line; line = next ? next + 1 : NULL) {
		char path[PATH_MAX];

		next = strchr(line, '\n');
		path_of(line, path, sizeof(path));
		if (strstr(path, LIBRARY)) {
			p->loaded = true;
			snprintf(p->library, sizeof(p->library), "%s", path);
		} else if (view_name_bytes(dirs_base(path, ""))) {
			snprintf(p->shm, sizeof(p->shm), "%s", path);
		}
	}
	buf_release(&maps);
}

static void look_at_program(struct process *p)
{
	struct program program;
	char link[64];
	struct stat st;
	int fd;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)p->pid);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	p->is_setuid = !fstat(fd, &st) && (st.st_mode & (S_ISUID | S_ISGID));
	program = program_of(fd);
	p->is_static = program.is_static;
	p->is_musl = program.is_musl;
	close(fd);
}

static int look_at_status(struct process *p)
{
	char status[8192];
	uint64_t number;
	ssize_t n = procfs_slurp(status, sizeof(status), "/proc/%d/status", (int)p->pid);

	if (n < 0)
		return (int)n;
	p->parent = procfs_number(status, "PPid:", &number) ? (pid_t)number : 0;
	p->uid = procfs_number(status, "Uid:", &number) ? (uid_t)number : (uid_t)-1;
	snprintf(p->name, sizeof(p->name), "%.*s",
		 !strncmp(status, "Name:\t", 6) ? (int)strcspn(status + 6, "\n") : 0, status + 6);
	return 0;
}

int process_read(struct process *p, pid_t pid)
{
	const char *preload;
	char link[64];
	ssize_t n;
	int err;

	*p = (struct process){.pid = pid};
	err = look_at_status(p);
	if (!err)
		err = procfs_slurp_all(&p->words, "/proc/%d/cmdline", (int)pid);
	if (err) {
		process_release(p);
		return err;
	}
	if (procfs_slurp_all(&p->environ, "/proc/%d/environ", (int)pid))
		p->hidden = true;
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	n = readlink(link, p->exe, sizeof(p->exe) - 1);
	p->exe[n < 0 ? 0 : n] = '\0';
	preload = process_env(p, "LD_PRELOAD");
	p->has_preload = preload && strstr(preload, LIBRARY);
	look_at_maps(p);
	look_at_program(p);
	return 0;
}

void process_release(struct process *p)
{
	buf_release(&p->words);
	buf_release(&p->environ);
}

const char *process_option(const struct process *p, const char *option)
{
	const char *word;

	for (size_t i = 1; (word = process_word(p, i)); i++)
		if (!strcmp(word, option))
			return process_word(p, i + 1);
	return NULL;
}

static bool says(const struct process *p, const char *text)
{
	const char *word;

	for (size_t i = 0; (word = process_word(p, i)); i++)
		if (strstr(word, text))
			return true;
	return false;
}

/* `dask worker` (dask-worker, dask_worker) run by Python; a wrapper's command line contains
 * it, too. */
static bool runs_dask_worker(const struct process *p)
{
	const char *word, *program = dirs_base(process_word(p, 0), "");
	bool dask = false;

	if (strncmp(program, "python", 6) != 0 && strncmp(program, "dask", 4) != 0)
		return false;
	for (size_t i = 0; (word = process_word(p, i)) && i < 6; i++) {
		if (!strcmp(dirs_base(word, ""), "dask-worker") || strstr(word, "dask_worker") ||
		    (dask && !strcmp(word, "worker")))
			return true;
		dask = !strcmp(dirs_base(word, ""), "dask");
	}
	return false;
}

/* An agent outlives its worker, and has the worker's shared memory mapped. */
bool process_is_agent(const struct process *p)
{
	return !strcmp(dirs_base(process_word(p, 0), ""), CREMA_AGENT_NAME);
}

/*
 * `dask worker` is the nanny, or with --no-nanny the worker. A nanny's worker is a child that
 * multiprocessing has spawned; that of a LocalCluster is only recognizable by its counters.
 */
enum process_kind process_kind(const struct process *p)
{
	struct process parent;

	if (runs_dask_worker(p))
		return says(p, "--no-nanny") ? PROCESS_WORKER : PROCESS_NANNY;
	if ((says(p, "spawn_main") || says(p, "multiprocessing.forkserver")) &&
	    !process_read(&parent, p->parent)) {
		bool of_nanny = runs_dask_worker(&parent);

		process_release(&parent);
		if (of_nanny)
			return PROCESS_WORKER;
	}
	return p->shm[0] && !process_is_agent(p) ? PROCESS_WORKER : PROCESS_OTHER;
}
