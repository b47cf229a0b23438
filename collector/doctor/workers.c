/* SPDX-License-Identifier: BSD-3-Clause */
/* workers.c - Dask's workers on this machine: whether they are measured, by which agent, and
 * its target. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/doctor/doctor.h"
#include "collector/doctor/process.h"
#include "collector/preload/program.h"
#include "common/clock.h"
#include "common/view.h"
#include "switch.h"
#include "version.h"

#define AGENT_SILENT_NS 5000000000u /* a running one reports each second */
#define LOAD(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)

/* Counts the agents of worker `pid`; the target of one of them. */
static int agents_of(pid_t pid, char *target, size_t size)
{
	char text[16];
	struct dirent *e;
	DIR *proc = opendir("/proc");
	int found = 0;

	snprintf(text, sizeof(text), "%d", (int)pid);
	while (proc && (e = readdir(proc))) {
		const char *to, *of;
		struct process p;

		if (!isdigit((unsigned char)e->d_name[0]) ||
		    process_read(&p, (pid_t)strtol(e->d_name, NULL, 10)))
			continue;
		of = process_is_agent(&p) ? process_option(&p, "--pid") : NULL;
		if (of && !strcmp(of, text)) {
			found++;
			to = process_option(&p, "--collector");
			snprintf(target, size, "%s", to ? to : "");
		}
		process_release(&p);
	}
	if (proc)
		closedir(proc);
	return found;
}

static void say_facts(struct doctor *d, const struct process *p, const struct view *v)
{
	static const char *const names[] = {"python", "dask", "distributed", "coffea", "uproot"};
	struct buf text = BUF_INIT;
	char line[400] = "";
	uint64_t boot_ns;
	json_t *facts = NULL;

	if (view_probe(&v->shm->facts, &text, &boot_ns))
		facts = json_loadb((const char *)text.data, text.len, 0, NULL);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = json_string_value(json_object_get(facts, names[i]));
		size_t n = strlen(line);

		if (value)
			snprintf(line + n, sizeof(line) - n, "%s%s %.63s", n ? ", " : "", names[i],
				 value);
	}
	if (line[0])
		doctor_say(d, DOCTOR_OK, "versions", "worker %d: %s", (int)p->pid, line);
	json_decref(facts);
	buf_release(&text);
}

/* The shim's notes: missing features, refusals. */
static void say_notes(struct doctor *d, const struct process *p, const struct view *v)
{
	for (uint32_t i = 0; i < CREMA_SHM_NOTES; i++) {
		struct text note = view_text(v, LOAD(&v->shm->note[i]));

		if (!note.ptr)
			continue;
		doctor_say(d, DOCTOR_WARN, "worker", "%d reports: %.*s", (int)p->pid, (int)note.len,
			   note.ptr);
		doctor_advise(d, "numbers that need this are 'unknown' in reports");
	}
}

/* The token that the worker's agent reads. */
static void token_of(const struct process *p, char *out, size_t size)
{
	const char *given = process_env(p, "CREMA_TOKEN_FILE"), *home = process_env(p, "HOME");
	const char *config = process_env(p, "XDG_CONFIG_HOME");

	if (given && *given)
		snprintf(out, size, "%s", given);
	else if (config && *config)
		snprintf(out, size, "%s/crema/token", config);
	else
		snprintf(out, size, "%s%s", home ? home : "", home ? "/.config/crema/token" : "");
}

/* Where the worker's agent stores unsent records, and its agent.log (dirs_state()). */
static void spool_of(const struct process *p, char *out, size_t size)
{
	const char *dir = process_env(p, "CREMA_DIR"), *home = process_env(p, "HOME");
	const char *state = process_env(p, "XDG_STATE_HOME");

	if (dir && *dir)
		snprintf(out, size, "%s/spool", dir);
	else if (state && *state)
		snprintf(out, size, "%s/crema/spool", state);
	else
		snprintf(out, size, "%s%s", home ? home : "",
			 home ? "/.local/state/crema/spool" : "");
}

/* Adds a worker's collector, and what its agent needs for it. */
static void add_target(struct doctor *d, const struct process *p, const char *address)
{
	const char *insecure = process_env(p, "CREMA_INSECURE");
	char token[PATH_MAX], spool[PATH_MAX];

	token_of(p, token, sizeof(token));
	spool_of(p, spool, sizeof(spool));
	doctor_target(d, address, token, spool);
	if (crema_switch(insecure, 0) != 1)
		return;
	doctor_say(d, DOCTOR_WARN, "agent",
		   "of worker %d sends unencrypted records to any program that answers at %s "
		   "(CREMA_INSECURE=on)",
		   (int)p->pid, address);
	doctor_advise(
		d, "start the worker without this variable, and the collector without --insecure");
}

static void look_at_agent(struct doctor *d, const struct process *p, const struct crema_shm *m)
{
	uint64_t now = clock_boot_ns(), beat = LOAD(&m->agent_heartbeat_boot_ns);
	char target[1024] = "";
	int agents = agents_of(p->pid, target, sizeof(target));

	if (!agents) {
		doctor_say(d, DOCTOR_BAD, "agent",
			   "worker %d has no agent (started %" PRIu32 " times so far)", (int)p->pid,
			   LOAD(&m->agent_starts));
		doctor_advise(d,
			      "is crema-agent next to '%s' or in ../../libexec/crema, and is it "
			      "executable (noexec)? agent.log in the spool has its last messages; "
			      "another agent starts 3 s after one dies",
			      p->library);
		return;
	}
	if (beat && now > beat && now - beat > AGENT_SILENT_NS) {
		doctor_say(d, DOCTOR_BAD, "agent", "of worker %d: no update for %.1f s",
			   (int)p->pid, (double)(now - beat) / 1e9);
		doctor_advise(d, "it is stopped or hangs: kill it; the worker starts another one, "
				 "and nothing is lost");
	} else {
		doctor_say(d, DOCTOR_OK, "agent", "of worker %d is running and sends to %s",
			   (int)p->pid, target[0] ? target : "nowhere");
	}
	if (target[0])
		add_target(d, p, target);
}

static void look_at_memory(struct doctor *d, const struct process *p)
{
	struct view v;
	int rc = view_look(&v, p->shm);

	if (rc == -EPROTO) {
		doctor_say(d, DOCTOR_BAD, "versions",
			   "worker %d uses a different release of libcrema.so than this crema %s",
			   (int)p->pid, CREMA_VERSION);
		doctor_advise(d, "use the library, agent and crema of one release (%s)",
			      p->library);
	} else if (rc) {
		doctor_say(d, DOCTOR_UNKNOWN, "agent",
			   "of worker %d: its memory '%s' cannot be read", (int)p->pid, p->shm);
		doctor_advise(d, "run crema doctor as the worker's user, in its container");
	} else {
		look_at_agent(d, p, v.shm);
		say_notes(d, p, &v);
		say_facts(d, p, &v);
		view_close(&v, false);
	}
}

static void look_at_worker(struct doctor *d, const struct process *p)
{
	const char *to = process_env(p, "CREMA_COLLECTOR"), *off = process_env(p, "CREMA");
	char text[1024], advice[512], token[PATH_MAX], spool[PATH_MAX];

	d->workers++;
	if (p->hidden) {
		doctor_say(d, DOCTOR_UNKNOWN, "worker",
			   "%d belongs to user %u: its memory and environment are hidden",
			   (int)p->pid, (unsigned int)p->uid);
		doctor_advise(d, "run crema doctor as that user or as root");
	} else if (p->is_musl) {
		doctor_say(d, DOCTOR_BAD, "worker",
			   "%d is not measured: '%.200s' uses musl (Alpine)", (int)p->pid, p->exe);
		doctor_advise(d, PROGRAM_MUSL_ADVICE);
	} else if (!p->loaded) {
		layer_of(p, text, sizeof(text), advice, sizeof(advice));
		doctor_say(d, DOCTOR_BAD, "worker", "%d is not measured: %s", (int)p->pid, text);
		doctor_advise(d, "%s", advice);
	} else if (crema_switch(off, 1) == 0) {
		doctor_say(d, DOCTOR_BAD, "worker",
			   "%d is not measured: its environment has CREMA=%s", (int)p->pid, off);
		doctor_advise(d, "start it without this variable");
	} else if (!p->shm[0]) {
		doctor_say(d, DOCTOR_BAD, "worker",
			   "%d has the library, but measures nothing (yet)", (int)p->pid);
		doctor_advise(
			d, "if something prevented it, the worker's output has a line from crema; "
			   "a worker that is process 1 of a container is measured only under "
			   "'crema run' or an init");
	} else {
		doctor_say(d, DOCTOR_OK, "worker", "%d is measured by %s", (int)p->pid, p->library);
		look_at_memory(d, p);
	}
	if (to && *to) {
		token_of(p, token, sizeof(token));
		spool_of(p, spool, sizeof(spool));
		doctor_target(d, to, token, spool);
	}
}

void doctor_workers(struct doctor *d)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	struct process p;

	if (!proc) {
		doctor_say(d, DOCTOR_UNKNOWN, "worker", "/proc cannot be read");
		doctor_advise(d, "mount /proc; crema's agents need it, too");
		return;
	}
	while ((e = readdir(proc))) {
		if (!isdigit((unsigned char)e->d_name[0]) ||
		    process_read(&p, (pid_t)strtol(e->d_name, NULL, 10)))
			continue;
		if (d->only ? p.pid != d->only : process_kind(&p) != PROCESS_WORKER)
			;
		else if (d->only || d->all_users || p.uid == geteuid())
			look_at_worker(d, &p);
		else
			d->others++;
		process_release(&p);
	}
	closedir(proc);
	if (!d->workers && d->only)
		doctor_say(d, DOCTOR_BAD, "worker", "there is no process %d", d->only);
	else if (!d->workers)
		doctor_say(d, DOCTOR_OK, "worker", "no Dask worker runs on this machine now");
}
