/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.c - the budget of descriptors for connections and for everything else. */
#include "collector/loop/limits.h"

#include <sys/resource.h>

#include "common/log.h"

#define SPARE_FDS 128u /* for the journal, the status page and its reports */

unsigned int limits_connections(unsigned int most)
{
	struct rlimit limit;
	unsigned int files, connections, wanted = most + SPARE_FDS;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	if (limit.rlim_cur < wanted) {
		limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
		setrlimit(RLIMIT_NOFILE, &limit);
		getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= wanted)
		return most;
	files = (unsigned int)limit.rlim_cur;
	connections = files > 2 * SPARE_FDS ? files - SPARE_FDS : files / 2;
	log_line("collect: at most %u agents at once, since no more than %u files may be open; for "
		 "%u "
		 "raise that limit to %u (ulimit -Hn, LimitNOFILE of a systemd unit)",
		 connections, files, most, wanted);
	return connections;
}
