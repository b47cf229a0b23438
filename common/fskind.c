/* SPDX-License-Identifier: BSD-3-Clause */
/* fskind.c - the table of contract/filesystems.def (fskind.h). */
#include "common/fskind.h"

#include <stddef.h>
#include <stdio.h>

#define FSKIND_PSEUDO FSKIND_NONE

static const struct {
	uint32_t f_type;
	enum fskind kind;
	const char *name;
} known[] = {
#define FILESYSTEM(type, kind, name) {type, FSKIND_##kind, name},
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

const char *fskind_text(enum fskind kind)
{
	static const char *const text[] = {
		[FSKIND_UNRESOLVED] = "unknown",    [FSKIND_EXACT] = "exact",
		[FSKIND_CALIBRATED] = "calibrated", [FSKIND_NONE] = "none",
		[FSKIND_UNKNOWN] = "unknown",
	};

	return text[kind];
}
