/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch.h - the words of an option that is on or off: shim, agent and commands accept the same
 * ones.
 */
#ifndef CREMA_CONTRACT_SWITCH_H
#define CREMA_CONTRACT_SWITCH_H

#include <stddef.h>
#include <string.h>

#define CREMA_SWITCH_WORDS "on|off, yes|no, true|false or 1|0"

/* 1 on, 0 off, -1 neither: reject it, or at least report it. NULL and "" are unset: returns
 * `unset`. */
static inline int crema_switch(const char *text, int unset)
{
	static const char *const words[][2] = {
		{"off", "on"}, {"no", "yes"}, {"false", "true"}, {"0", "1"}};

	if (!text || !*text)
		return unset;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		for (int on = 0; on < 2; on++)
			if (!strcmp(text, words[i][on]))
				return on;
	return -1;
}

#endif
