/* SPDX-License-Identifier: BSD-3-Clause */
/* run_name.c - see run_name.h. */
#include "common/run_name.h"

#include <string.h>

#include "common/utf8.h"

bool run_name_is_good(const char *name)
{
	size_t n = name ? strlen(name) : 0, used;
	uint32_t c;

	if (!n || n > RUN_NAME_BYTES || !strcmp(name, "last")) /* --run last means another one */
		return false;
	for (; *name; name += used) {
		used = utf8_take(name, strlen(name), &c);
		if (!used || !utf8_is_shown(c))
			return false;
	}
	return true;
}
