/* SPDX-License-Identifier: BSD-3-Clause */
/* journal_segment.c - creates, leaves and lists segments. */
#include "collector/journal/journal_segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/journal/journal_sync.h"
#include "common/clock.h"

#define CREATE_TRIES 16

/* The newest segment in the directory: 0 if there is none. */
static uint64_t newest_ns(const char *dir)
{
	char **names = NULL;
	int n = framefile_list(dir, &names);
	uint64_t ns = n > 0 ? framefile_created_ns(names[n - 1]) : 0;

	free(names);
	return ns;
}

void segment_init(struct segment *segment, const char *dir)
{
	*segment = (struct segment){.file.fd = -1, .created_ns = newest_ns(dir)};
}

void segment_list(const struct segment *segment, const char *dir, uint64_t *others_bytes,
		  uint64_t *oldest_ns)
{
	char **names = NULL;
	int i, n = framefile_list(dir, &names);
	uint64_t bytes = 0;

	*oldest_ns = 0;
	for (i = 0; i < n && !*oldest_ns; i++)
		*oldest_ns = framefile_created_ns(names[i]);
	free(names);
	framefile_sizes(dir, &bytes);
	*others_bytes = bytes > segment->file.size ? bytes - segment->file.size : 0;
}

bool segment_is_empty(const struct segment *segment)
{
	return segment->file.fd < 0 || segment->file.size == segment->empty_bytes;
}

int segment_begin(struct segment *segment, const char *dir, struct journal_sync *sync)
{
	struct framefile file = {.fd = -1};
	uint64_t created_ns = segment->created_ns;
	int err = -EEXIST, fd, i;

	/* If the clock was set back, a segment must still not be older than those before it. */
	for (i = 0; err == -EEXIST && i < CREATE_TRIES; i++) {
		uint64_t now = clock_real_ns();

		created_ns = now > created_ns ? now : created_ns + 1;
		err = framefile_create(&file, dir, "journal", created_ns, NULL);
	}
	if (err)
		return err;
	fd = fcntl(file.fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		err = -errno;
		framefile_close(&file);
		unlink(file.path);
		return err;
	}
	journal_sync_file(sync, fd);
	if (segment->file.fd >= 0 && segment_is_empty(segment))
		unlink(segment->file.path);
	framefile_close(&segment->file);
	*segment = (struct segment){file, created_ns, file.size};
	return 0;
}

bool segment_is_removed(const struct segment *segment)
{
	struct stat st;

	return !fstat(segment->file.fd, &st) && !st.st_nlink;
}
