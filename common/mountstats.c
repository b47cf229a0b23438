/* SPDX-License-Identifier: BSD-3-Clause */
/* mountstats.c - counters of NFS and Lustre mounts (mountstats.h). */
#include "common/mountstats.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/inflate.h"
#include "common/mounts.h"
#include "common/procfs.h"

#define DEVICES 256

/* The file systems that were counted. */
struct seen {
	uint64_t dev[DEVICES];
	size_t n;
};

static bool begins(struct text t, const char *with)
{
	size_t n = strlen(with);

	return t.len >= n && !memcmp(t.ptr, with, n);
}

/* The next word of a line; empty at its end. */
static struct text word(struct text *line)
{
	while (line->len && *line->ptr == ' ') {
		line->ptr++;
		line->len--;
	}
	return mounts_take(line, ' ');
}

static bool word_number(struct text *line, uint64_t *out)
{
	struct text t = word(line);

	*out = 0;
	for (size_t i = 0; i < t.len; i++) {
		uint64_t digit = (uint64_t)(t.ptr[i] - '0');

		if (t.ptr[i] < '0' || t.ptr[i] > '9' || *out > (UINT64_MAX - digit) / 10)
			return false;
		*out = *out * 10 + digit;
	}
	return t.len > 0;
}

/* "device SOURCE mounted on POINT with fstype TYPE [statvers=...]" */
static bool is_nfs(struct text line, struct text *point)
{
	struct text type = {NULL, 0};

	if (!text_is(word(&line), "device"))
		return false;
	word(&line);
	word(&line);
	word(&line);
	*point = word(&line);
	word(&line);
	if (text_is(word(&line), "fstype"))
		type = word(&line);
	return text_is(type, "nfs") || text_is(type, "nfs4");
}

/* Finds whether it is the first mount of its file system. -EBADMSG: unknown. */
static int is_first(struct seen *seen, struct text mountinfo, struct text point, uint32_t *set)
{
	struct mount m;

	while (mounts_next(&mountinfo, &m)) {
		if (m.point.len != point.len || memcmp(m.point.ptr, point.ptr, point.len) ||
		    !begins(m.type, "nfs"))
			continue;
		for (size_t i = 0; i < seen->n; i++)
			if (seen->dev[i] == m.dev)
				return 0;
		if (seen->n == DEVICES)
			return -EBADMSG;
		seen->dev[seen->n++] = m.dev;
		*set += inflate_crc(0, &m.dev, sizeof(m.dev));
		return 1;
	}
	return -EBADMSG;
}

/* normal read, normal write, direct read, direct write, server read, server write, pages ... */
static bool add_bytes(struct text line, struct mount_bytes *out)
{
	uint64_t n[8];

	mounts_take(&line, '\t');
	mounts_take(&line, '\t');
	for (size_t i = 0; i < 8; i++)
		if (!word_number(&line, &n[i]))
			return false;
	out->read_bytes += n[0] + n[2];
	out->server_read_bytes += n[4];
	return true;
}

int mountstats_sum(struct text mountstats, struct text mountinfo, struct mount_bytes *out)
{
	struct seen seen = {.n = 0};
	struct text line, point;
	bool waits = false;
	int first;

	*out = (struct mount_bytes){0};
	while (mountstats.len) {
		line = mounts_take(&mountstats, '\n');
		if (begins(line, "device ")) {
			if (waits)
				return -EBADMSG;
			if (!is_nfs(line, &point))
				continue;
			first = is_first(&seen, mountinfo, point, &out->set);
			if (first < 0)
				return first;
			waits = first;
			out->mounts += (uint64_t)first;
			continue;
		}
		if (!waits || !begins(line, "\tbytes:\t"))
			continue;
		if (!add_bytes(line, out))
			return -EBADMSG;
		waits = false;
	}
	return waits ? -EBADMSG : 0;
}

int lustre_read_sum(struct text stats, uint64_t *bytes)
{
	struct text line;
	uint64_t samples, least, most;

	*bytes = 0;
	if (!begins(stats, "snapshot_time"))
		return -EBADMSG;
	while (stats.len) {
		line = mounts_take(&stats, '\n');
		if (!begins(line, "read_bytes "))
			continue;
		word(&line);
		/* read_bytes N samples [bytes] MIN MAX SUM [SUM OF SQUARES] */
		if (!word_number(&line, &samples) || !text_is(word(&line), "samples") ||
		    !text_is(word(&line), "[bytes]") || !word_number(&line, &least) ||
		    !word_number(&line, &most) || !word_number(&line, bytes))
			return -EBADMSG;
	}
	return 0;
}

/* Without the NULs at the end. */
static struct text text_in(const struct buf *b)
{
	return (struct text){(const char *)b->data, b->len ? strlen((const char *)b->data) : 0};
}

static int read_nfs(const char *proc, struct text mountinfo, struct mount_bytes *out)
{
	struct buf stats = BUF_INIT;
	int rc = procfs_slurp_all(&stats, "%s/self/mountstats", proc);

	rc = rc ? rc : mountstats_sum(text_in(&stats), mountinfo, out);
	buf_release(&stats);
	return rc;
}

/* The sum of PROC/fs/lustre/LAYER/NAME/stats over all names, of which there are *n. */
static int sum_of(const char *proc, const char *layer, uint64_t *n, uint64_t *sum, uint32_t *set)
{
	char path[256];
	struct buf stats = BUF_INIT;
	struct dirent *e;
	uint64_t bytes;
	DIR *dir;
	int rc = 0;

	*n = *sum = 0;
	snprintf(path, sizeof(path), "%s/fs/lustre/%s", proc, layer);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!rc && (e = readdir(dir))) {
		if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
			continue;
		buf_clear(&stats);
		rc = procfs_slurp_all(&stats, "%s/%s/stats", path, e->d_name);
		rc = rc ? rc : lustre_read_sum(text_in(&stats), &bytes);
		*sum += rc ? 0 : bytes;
		*set += inflate_crc(0, e->d_name, strlen(e->d_name));
		++*n;
	}
	closedir(dir);
	buf_release(&stats);
	return rc;
}

static int read_lustre(const char *proc, struct text mountinfo, struct mount_bytes *out)
{
	struct mount m;
	uint64_t layers = 0, targets = 0;
	bool any = false;
	int rc = 0;

	while (!any && mounts_next(&mountinfo, &m))
		any = text_is(m.type, "lustre");
	if (any)
		rc = sum_of(proc, "llite", &layers, &out->read_bytes, &out->set);
	if (any && !rc)
		rc = sum_of(proc, "osc", &targets, &out->server_read_bytes, &out->set);
	/* Without one of its targets the sum would be different, too. */
	out->mounts = layers + targets;
	return rc || !any ? rc : layers && targets ? 0 : -ENODATA;
}

void mount_bytes_read(const char *proc, struct mount_bytes *nfs, struct mount_bytes *lustre)
{
	struct buf mounts = BUF_INIT;
	int rc = procfs_slurp_all(&mounts, "%s/self/mountinfo", proc);

	*nfs = *lustre = (struct mount_bytes){0};
	nfs->error = rc ? rc : read_nfs(proc, text_in(&mounts), nfs);
	lustre->error = rc ? rc : read_lustre(proc, text_in(&mounts), lustre);
	buf_release(&mounts);
}
