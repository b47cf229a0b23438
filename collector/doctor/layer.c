/* SPDX-License-Identifier: BSD-3-Clause */
/* layer.c - which process above a worker lost LD_PRELOAD. */
#include <stdio.h>
#include <string.h>

#include "collector/doctor/process.h"

#define DEEPEST 64

/* Programs that are known to clean the environment, by process name. */
static const struct known {
	const char *name, *advice;
} known[] = {
	{"sudo", "sudo removes LD_PRELOAD: put 'crema run --' after it (sudo ... crema run -- "
		 "dask worker ...)"},
	{"su", "su - begins with an empty environment: put 'crema run --' after it"},
	{"sshd",
	 "ssh does not pass on the environment: put 'crema run --' into the remote command"},
	{"slurmstepd",
	 "the job started without it: put 'crema run --' into the job script (dask-jobqueue: "
	 "job_script_prologue, or python='crema run -- python')"},
	{"condor_starter", "the job started without it: use 'environment' in the submit file, or "
			   "'crema run --' in its executable"},
	{"condor_exec.exe", "put 'crema run --' into the job's script"},
	{"pbs_mom", "the job started without it: put 'crema run --' into the job script"},
	{"sge_shepherd", "the job started without it: put 'crema run --' into the job script"},
	{"starter-suid",
	 "the container's runtime removed it: use apptainer --env LD_PRELOAD=..., or "
	 "'crema run --' inside"},
	{"containerd-shim",
	 "the container started without it: set LD_PRELOAD in its specification, "
	 "or 'crema run --' inside"},
	{"conmon",
	 "the container started without it: set LD_PRELOAD in its specification, or 'crema "
	 "run --' inside"},
};

static const char *advice_for(const struct process *from, const struct process *to)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strncmp(from->name, known[i].name, 15))
			return known[i].advice;
		if (to && !strncmp(to->name, known[i].name, 15))
			return known[i].advice;
	}
	if (process_kind(from) == PROCESS_NANNY)
		return "the nanny starts its worker without it: check "
		       "distributed.nanny.pre-spawn-environ in "
		       "Dask's configuration";
	if (from->is_setuid || (to && to->is_setuid))
		return "a setuid program ignores LD_PRELOAD and drops it: put 'crema run --' after "
		       "it";
	return "it starts its child without LD_PRELOAD (unset, env -i, its own environment): "
	       "put "
	       "'crema run --' behind it";
}

static void put_command(const struct process *p, char *out, size_t size)
{
	const char *word;
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; (word = process_word(p, i)) && n + 2 < size && i < 4; i++) {
		snprintf(out + n, size - n, "%s%.200s", i ? " " : "", word);
		n = strlen(out);
	}
	if (!n)
		snprintf(out, size, "%s", p->name);
}

/* p has it in its environment, but it is not loaded. */
static void not_loaded(const struct process *p, char *text, size_t size, char *advice,
		       size_t advice_size)
{
	const char *preload = process_env(p, "LD_PRELOAD");

	snprintf(text, size,
		 "LD_PRELOAD is set ('%.300s'), but the process's loader did not load it", preload);
	if (p->is_static)
		snprintf(advice, advice_size,
			 "'%.200s' is linked statically: no library can be preloaded", p->exe);
	else if (p->is_setuid)
		snprintf(advice, advice_size, "'%.200s' is setuid: the loader ignores LD_PRELOAD",
			 p->exe);
	else
		snprintf(advice, advice_size,
			 "does the file exist, readable and built for this machine, also inside "
			 "the worker's container?");
}

bool layer_of(const struct process *p, char *text, size_t size, char *advice, size_t advice_size)
{
	struct process above, below = {0};
	char name[320], child[160] = "the worker";
	pid_t at = p->parent;
	bool found = false, blind = p->hidden;

	if (p->has_preload) {
		not_loaded(p, text, size, advice, advice_size);
		return true;
	}
	for (int i = 0; i < DEEPEST && at > 0 && !found; i++) {
		if (process_read(&above, at))
			break;
		blind |= above.hidden;
		if (above.has_preload) {
			put_command(&above, name, sizeof(name));
			snprintf(text, size,
				 "process %d (%s) had LD_PRELOAD, but its child %s did not",
				 (int)above.pid, name, child);
			snprintf(advice, advice_size, "%s",
				 advice_for(&above, below.pid ? &below : NULL));
			found = true;
		}
		put_command(&above, name, sizeof(name));
		snprintf(child, sizeof(child), "%d (%.100s)", (int)above.pid, name);
		at = above.parent;
		process_release(&below);
		below = above;
	}
	process_release(&below);
	if (found)
		return true;
	snprintf(text, size, "none of its parent processes has LD_PRELOAD%s",
		 blind ? " as far as this user can see" : "");
	snprintf(advice, advice_size,
		 "start it with 'crema run -- dask worker ...', or set LD_PRELOAD where you start "
		 "the workers");
	return false;
}
