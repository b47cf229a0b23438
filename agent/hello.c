/* SPDX-License-Identifier: BSD-3-Clause */
/* hello.c - the HELLO frame: the machine and the software stack. */
#include "agent/hello.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/redact.h"
#include "common/clock.h"
#include "common/frame.h"
#include "common/log.h"
#include "common/procfs.h"
#include "common/run_name.h"
#include "common/task.h"
#include "version.h"

/* The rest of the first line that begins with name, after ": "; n = 0 if there is none. */
static struct text line_value(const char *text, const char *name)
{
	struct text t = {NULL, 0};
	const char *at = strstr(text, name), *end;

	at = at ? strchr(at, ':') : NULL;
	if (!at)
		return t;
	at += 1 + strspn(at + 1, " \t");
	end = strchr(at, '\n');
	t.ptr = at;
	t.len = end ? (size_t)(end - at) : strlen(at);
	return t;
}

/* CREMA_RUN_NAME; null if there is none, if names are hidden, or if it is not a valid name. */
static void pack_run_name(msgpack_packer *pk, const struct redact *redact)
{
	const char *name = getenv("CREMA_RUN_NAME");
	struct text shown = {NULL, 0};

	if (name && *name && !run_name_is_good(name))
		log_line("CREMA_RUN_NAME: a name is " RUN_NAME_WORDS);
	else if (name && *name)
		shown = redact_words(redact, (struct text){name, strlen(name)});
	pack_kv_str(pk, "run_name", shown.ptr, shown.len);
}

static void pack_machine(msgpack_packer *pk)
{
	char text[4096];
	struct utsname u;
	struct text cpu = {NULL, 0};
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	bool ok = uname(&u) == 0;
	struct stat net;
	ssize_t n;

	pack_kv_text(pk, "host", ok ? u.nodename : NULL);
	pack_kv_text(pk, "kernel", ok ? u.release : NULL);
	n = procfs_slurp(text, sizeof(text), "/proc/sys/kernel/random/boot_id");
	pack_kv_str(pk, "boot_id", n >= 36 ? text : NULL, 36);
	ok = stat("/proc/self/ns/net", &net) == 0;
	pack_kv_maybe(pk, "net_namespace", ok, ok ? net.st_ino : 0);
	if (procfs_slurp(text, sizeof(text), "/proc/cpuinfo") > 0)
		cpu = line_value(text, "model name");
	pack_kv_str(pk, "cpu_model", cpu.ptr, cpu.len);
	pack_kv_maybe(pk, "cores", cores > 0, (uint64_t)cores);
	n = procfs_slurp(text, sizeof(text), "/proc/meminfo");
	procfs_pack(pk, "memory_bytes", n > 0 ? text : NULL, "MemTotal:", 1024);
}

static void pack_filesystems(msgpack_packer *pk, const struct view *v, const struct fskinds *kinds)
{
	size_t n = 0, map;

	for (unsigned int i = 0; i < CREMA_SHM_FILESYSTEMS; i++)
		n += kinds->entry[i].kind != FSKIND_UNRESOLVED;
	pack_text(pk, "filesystems");
	pack_array(pk, n);
	for (unsigned int i = 0; i < CREMA_SHM_FILESYSTEMS; i++) {
		const struct fskind_entry *e = &kinds->entry[i];
		struct text path = redact_file(v->redact, view_text(v, v->shm->filesystem[i].path));

		if (e->kind == FSKIND_UNRESOLVED)
			continue;
		map = pack_map_begin(pk);
		pack_kv_str(pk, "path", path.ptr, path.len);
		pack_kv_text(pk, "type", e->name);
		pack_kv_text(pk, "storage", fskind_text(e->kind));
		pack_kv_text(pk, "calibration", e->figures[0] ? e->figures : NULL);
		pack_map_end(pk, map);
	}
}

/* The text of "python": "..." in the probe's JSON. */
static struct text python_of(const struct buf *stack)
{
	static const char key[] = "\"python\":";
	struct text t = {NULL, 0};
	const char *at, *end;

	if (!stack || !stack->len)
		return t;
	at = memmem(stack->data, stack->len, key, sizeof(key) - 1);
	end = at ? (const char *)stack->data + stack->len : NULL;
	at = at ? memchr(at + sizeof(key) - 1, '"', (size_t)(end - at) - sizeof(key) + 1) : NULL;
	if (!at)
		return t;
	at++;
	end = memchr(at, '"', (size_t)(end - at));
	if (end)
		t = (struct text){at, (size_t)(end - at)};
	return t;
}

int hello_frame(struct buf *out, const struct view *v, const struct fskinds *kinds,
		const struct buf *stack, uint64_t stream)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_HELLO, v->shm->worker, stream);
	const struct crema_shm *m = v->shm;
	struct packed_map map;
	struct text python = python_of(stack);
	msgpack_packer *pk = packed_map_begin(&map);
	size_t facts;

	pack_text(pk, "facts");
	facts = pack_map_begin(pk);
	pack_text(pk, "redacted");
	pack_bool(pk, v->redact && v->redact->on);
	pack_run_name(pk, v->redact);
	pack_machine(pk);
	pack_kv_u64(pk, "pid", m->pid);
	pack_kv_u64(pk, "start_ticks", m->start_ticks);
	pack_kv_u64(pk, "agent_pid", (uint64_t)getpid());
	pack_kv_text(pk, "agent_version", CREMA_VERSION);
	pack_kv_u64(pk, "shim_abi", m->abi);
	pack_kv_str(pk, "python", python.ptr, python.len);
	pack_kv_u64(pk, "boot_ns", clock_boot_ns());
	pack_kv_u64(pk, "real_ns", clock_real_ns());
	pack_filesystems(pk, v, kinds);
	pack_text(pk, "stack");
	if (stack && stack->len)
		pack_str(pk, (const char *)stack->data, stack->len);
	else
		pack_nil(pk);
	pack_map_end(pk, facts);
	pack_text(pk, "task_fields");
	task_pack_names(pk);
	return frame_encode_buf(out, &head, packed_map_end(&map));
}
