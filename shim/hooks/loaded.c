/* SPDX-License-Identifier: BSD-3-Clause */
/* loaded.c - the loader's list of files. */
#define _GNU_SOURCE
#include "shim/hooks/loaded.h"

#include <link.h>
#include <string.h>

#include "shim/count/codec.h"
#include "shim/count/task.h"
#include "shim/count/thread.h"
#include "shim/python/py.h"
#include "shim/shim.h"

static const struct {
	const char *file;
	uint64_t counts;
	const char *text;
} libraries[] = {
#define LIBRARY(file, counts, text) {file, counts, text},
#include "libraries.def"
};

enum { LIBRARIES = sizeof(libraries) / sizeof(libraries[0]) };

static int told[LIBRARIES];

static void name(const char *file)
{
	for (int i = 0; i < LIBRARIES; i++) {
		if (told[i] || strncmp(file, libraries[i].file, strlen(libraries[i].file)))
			continue;
		told[i] = 1;
		shim_note(libraries[i].text);
		if (!libraries[i].counts)
			continue;
		tasks_cannot_count(libraries[i].counts, 0);
		__atomic_fetch_or(&crema_shm->totals.count_unknown, libraries[i].counts,
				  __ATOMIC_RELAXED);
	}
}

/* In which file the interpreter is. */
static void find_python(const struct dl_phdr_info *file)
{
	uintptr_t at = (uintptr_t)Py_IsInitialized;

	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];
		uintptr_t from = file->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || at < from || at >= from + p->p_memsz)
			continue;
		STORE(&thread_python_from, from);
		STORE(&thread_python_to, from + p->p_memsz);
	}
}

/* How many files the loader has ever loaded, when they were all looked at. */
static unsigned long long looked_at;

static int look(struct dl_phdr_info *file, size_t bytes, void *loaded)
{
	const char *slash = file->dlpi_name ? strrchr(file->dlpi_name, '/') : NULL;

	(void)bytes;
	*(unsigned long long *)loaded = file->dlpi_adds;
	if (file->dlpi_adds == LOAD(&looked_at))
		return 1;
	find_python(file);
	if (slash)
		name(slash + 1);
	return 0;
}

void loaded_look(void)
{
	unsigned long long loaded = 0;
	static uint32_t epoch;

	if (!shim_armed())
		return;
	if (epoch != shim_epoch) { /* a forked child has its own shared memory */
		epoch = shim_epoch;
		looked_at = 0;
		memset(told, 0, sizeof(told));
	}
	dl_iterate_phdr(look, &loaded);
	STORE(&looked_at, loaded);
}
