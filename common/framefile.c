/* SPDX-License-Identifier: BSD-3-Clause */
/* framefile.c - writes files of frames, and finds them. */
#include "common/framefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dirs.h"
#include "common/pack.h"

char *framefile_name(char *out, uint64_t created_ns, const uint8_t *worker)
{
	char hex[FRAME_HEX_BYTES] = "journal";

	if (worker)
		frame_hex(hex, worker);
	snprintf(out, FRAMEFILE_NAME_BYTES, "%020" PRIu64 "-%s" FRAMEFILE_SUFFIX, created_ns, hex);
	return out;
}

static int add_header(struct framefile *f, const char *kind, uint64_t created_ns,
		      const uint8_t *worker)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_FILE_HEADER, worker, 0);
	struct buf bytes = BUF_INIT;
	struct packed_map map;
	msgpack_packer *pk = packed_map_begin(&map);
	int rc;

	pack_kv_u64(pk, "format", CREMA_FILE_FORMAT);
	pack_kv_text(pk, "kind", kind);
	pack_kv_u64(pk, "created_ns", created_ns);
	rc = frame_encode_buf(&bytes, &head, packed_map_end(&map));
	if (!rc)
		rc = framefile_append(f, bytes.data, bytes.len);
	buf_release(&bytes);
	return rc;
}

static int create(struct framefile *f, const char *dir, const char *name, const char *kind,
		  uint64_t created_ns, const uint8_t *worker)
{
	int rc;

	f->fd = -1;
	f->size = 0;
	rc = dirs_join(f->path, sizeof(f->path), dir, name);
	if (rc)
		return rc;
	f->fd = open(f->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (f->fd < 0)
		return -errno;
	rc = add_header(f, kind, created_ns, worker);
	if (rc) {
		framefile_close(f);
		unlink(f->path);
	}
	return rc;
}

int framefile_create(struct framefile *f, const char *dir, const char *kind, uint64_t created_ns,
		     const uint8_t *worker)
{
	char name[FRAMEFILE_NAME_BYTES];

	return create(f, dir, framefile_name(name, created_ns, worker), kind, created_ns, worker);
}

int framefile_replace(const char *dir, const char *name, const char *kind, uint64_t created_ns,
		      const struct buf *frames)
{
	char path[PATH_MAX], hidden[64];
	struct framefile file;
	uint64_t random[2];
	int rc = dirs_join(path, sizeof(path), dir, name);

	if (!rc && getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		rc = -EIO;
	if (rc)
		return rc;
	snprintf(hidden, sizeof(hidden), FRAMEFILE_HIDDEN "%016" PRIx64 "%016" PRIx64, random[0],
		 random[1]);
	rc = create(&file, dir, hidden, kind, created_ns, NULL);
	if (rc)
		return rc;
	rc = framefile_append(&file, frames->data, frames->len);
	if (!rc && rename(file.path, path))
		rc = -errno;
	if (rc)
		unlink(file.path);
	framefile_close(&file);
	return rc;
}

int framefile_append(struct framefile *f, const void *frames, size_t bytes)
{
	const char *at = frames;
	size_t done = 0;
	int rc = 0;

	if (f->fd < 0)
		return -EBADF;
	while (done < bytes) {
		ssize_t n = pwrite(f->fd, at + done, bytes - done, (off_t)(f->size + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			rc = n < 0 ? -errno : -ENOSPC;
			break;
		}
		done += (size_t)n;
	}
	if (!rc)
		f->size += bytes;
	else if (done && ftruncate(f->fd, (off_t)f->size) < 0)
		rc = -EIO;
	return rc;
}

int framefile_sync(struct framefile *f)
{
	return f->fd < 0 ? -EBADF : fdatasync(f->fd) < 0 ? -errno : 0;
}

void framefile_close(struct framefile *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static int is_ours(const struct dirent *e)
{
	size_t n = strlen(e->d_name), suffix = strlen(FRAMEFILE_SUFFIX);

	return n > suffix && e->d_name[0] != '.' &&
	       strcmp(e->d_name + n - suffix, FRAMEFILE_SUFFIX) == 0;
}

/* Moves the names into one allocation, pointers first, so that one free() releases them. */
static char **flatten(struct dirent **list, int n)
{
	size_t size = ((size_t)n + 1) * sizeof(char *);
	char **names, *at;

	for (int i = 0; i < n; i++)
		size += strlen(list[i]->d_name) + 1;
	names = malloc(size);
	if (!names)
		return NULL;
	at = (char *)(names + n + 1);
	for (int i = 0; i < n; i++) {
		size_t len = strlen(list[i]->d_name) + 1;

		names[i] = memcpy(at, list[i]->d_name, len);
		at += len;
	}
	names[n] = NULL;
	return names;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

int framefile_list(const char *dir, char ***names)
{
	struct dirent **list = NULL;
	int n = scandir(dir, &list, is_ours, by_bytes);

	*names = NULL;
	if (n < 0)
		return -errno;
	*names = flatten(list, n);
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
	return *names ? n : -ENOMEM;
}

uint64_t framefile_created_ns(const char *name)
{
	return strtoull(name, NULL, 10);
}

int framefile_sizes(const char *dir, uint64_t *bytes)
{
	char **names = NULL, path[PATH_MAX];
	int i, n = framefile_list(dir, &names);
	struct stat st;

	*bytes = 0;
	for (i = 0; i < n; i++) {
		if (!dirs_join(path, sizeof(path), dir, names[i]) && !stat(path, &st))
			*bytes += (uint64_t)st.st_size;
	}
	free(names);
	return n < 0 ? n : 0;
}
