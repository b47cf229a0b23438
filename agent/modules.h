/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * modules.h - which library of the worker an address belongs to: /proc/PID/maps and the build ids
 * of the files in it. The worker does no work for it.
 *
 * A module is a file that is mapped executable. Its number is a hash of path and build id, so it is
 * the same from every agent. After the worker's end the last known map is used. One thread.
 */
#ifndef CREMA_AGENT_MODULES_H
#define CREMA_AGENT_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODULES_BUILD_ID 20

struct module {
	uint64_t id;
	char *path;
	uint8_t build_id[MODULES_BUILD_ID];
	uint32_t build_id_bytes; /* 0 = unknown */
	bool told;		 /* for the caller's use */
};

struct mapping {
	uint64_t start, end, offset;
	size_t module;
};

struct modules {
	bool no_ids; /* set it before the first reading: no file is opened for its build id */
	struct module *module;
	size_t n, cap;
	struct mapping *map; /* by address */
	size_t maps, maps_cap;
};

/* Reads the map again; known entries stay if it cannot be read. 0 or -errno. */
int modules_read(struct modules *m, int pid);
void modules_release(struct modules *m);
/* The module of an address, and the offset in its file; NULL: no module. */
struct module *modules_find(struct modules *m, uint64_t address, uint64_t *file_offset);

#endif
