/* SPDX-License-Identifier: BSD-3-Clause */
/* doing_stack.c - from frames to lines. */
#include "agent/doing_stack.h"

#include <stdio.h>
#include <string.h>

#include "agent/doing_object.h"
#include "agent/py_stack.h"
#include "agent/redact.h"
#include "fnv.h"
#include "own_code.h"

void doing_stack_text(char out[DOING_FRAME_BYTES], const struct view *v, const char *file, int line,
		      const char *function)
{
	struct text shown = redact_file(v->redact, (struct text){file, strlen(file)});
	char number[16] = "?";

	if (line)
		snprintf(number, sizeof(number), "%d", line);
	snprintf(out, DOING_FRAME_BYTES, "%.*s:%s %.60s", shown.len < 120 ? (int)shown.len : 120,
		 shown.len < 120 ? shown.ptr : shown.ptr + shown.len - 120, number, function);
}

static size_t read_worker(void *pid, uint64_t address, void *to, size_t bytes)
{
	return doing_memory(*(int *)pid, address, to, bytes);
}

struct py_process doing_python(const struct view *v, int *pid)
{
	return (struct py_process){.read = read_worker,
				   .arg = pid,
				   .version = v->shm->python_version,
				   .runtime = v->shm->python_runtime,
				   .code_type = v->shm->python_types[0],
				   .unicode_type = v->shm->python_types[1],
				   .bytes_type = v->shm->python_types[2]};
}

uint64_t doing_stack_entry(const struct view *v, int pid, uint64_t thread_state, uint32_t tid)
{
	struct py_process p = doing_python(v, &pid);

	return py_stack_entry(&p, thread_state, tid);
}

void doing_stack_read(struct doing_stack *s, const struct view *v, int pid, uint64_t thread_state,
		      uint32_t tid)
{
	struct py_process p = doing_python(v, &pid);
	char function[PY_NAME_BYTES], file[PY_FILE_BYTES];
	struct py_frame frame[PY_FRAMES];
	size_t n = py_stack_walk(&p, thread_state, tid, frame);
	bool users = false;
	int line;

	memset(s, 0, offsetof(struct doing_stack, frame));
	for (size_t i = 0; i < n && (s->frames < DOING_FRAMES || !users); i++) {
		if (!py_stack_name(&p, &frame[i], function, file, &line))
			continue;
		if (s->frames < DOING_FRAMES)
			doing_stack_text(s->frame[s->frames++], v, file, line, function);
		if (users || (!crema_is_own_code(file) && s->place))
			continue;
		users = crema_is_own_code(file);
		doing_stack_text(s->line, v, file, line, function);
		s->place = crema_hash_more(CREMA_HASH_BEGIN, &frame[i].code, sizeof(uint64_t));
	}
}
