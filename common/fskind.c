/* SPDX-License-Identifier: BSD-3-Clause */
/* fskind.c - the table of contract/filesystems.def (fskind.h). */
#include "common/fskind.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define FSKIND_PSEUDO FSKIND_NONE

static const struct {
	uint32_t f_type;
	enum fskind kind;
	const char *name;
	enum fsplace place;
} known[] = {
#define FILESYSTEM(type, kind, name, place) {type, FSKIND_##kind, name, FSPLACE_##place},
#include "filesystems.def"
#undef FILESYSTEM
};

enum fskind fskind_of(int64_t f_type, char *name)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].f_type == (uint32_t)f_type) {
			snprintf(name, FSKIND_NAME, "%s", known[i].name);
			return known[i].kind;
		}
	}
	snprintf(name, FSKIND_NAME, "type 0x%x", (uint32_t)f_type);
	return FSKIND_UNKNOWN;
}

enum fsplace fsplace_of(const char *name)
{
	/* Images and layers of containers, mounted by each host. */
	static const char *const own[] = {"fuse.fuse-overlayfs", "fuse.squashfuse",
					  "fuse.squashfuse_ll"};

	for (size_t i = 0; name && i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(name, own[i]))
			return FSPLACE_OWN;
	for (size_t i = 0; name && i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i].name))
			return known[i].place;
	return name && !strncmp(name, "fuse", 4) ? FSPLACE_SHARED : FSPLACE_EITHER;
}

const char *fskind_text(enum fskind kind)
{
	static const char *const text[] = {
		[FSKIND_UNRESOLVED] = "unknown",    [FSKIND_EXACT] = "exact",
		[FSKIND_CALIBRATED] = "calibrated", [FSKIND_NONE] = "none",
		[FSKIND_UNKNOWN] = "unknown",
	};

	return text[kind];
}
