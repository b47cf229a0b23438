/* SPDX-License-Identifier: BSD-3-Clause */
/* takeover.c - sends the spool files that dead agents of this user left behind. */
#include "agent/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/dirs.h"

/* A file younger than this may not be locked by its writer yet; one from the future was written by
 * another clock. */
#define YOUNG_SECONDS 10

void takeover_init(struct takeover *t, const char *dir, const struct net_address *address,
		   struct uplink_security *security)
{
	memset(t, 0, sizeof(*t));
	memcpy(t->dir, dir, strlen(dir) + 1);
	t->address = *address;
	t->security = security;
	t->fd = -1;
	t->reader.fd = -1;
}

static void let_go(struct takeover *t)
{
	if (t->linked)
		uplink_release(&t->uplink);
	t->linked = false;
	framefile_reader_close(&t->reader);
	t->reading = false;
	buf_release(&t->hello);
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	t->path[0] = '\0';
}

void takeover_release(struct takeover *t)
{
	let_go(t);
}

static int open_reader(struct takeover *t)
{
	int rc;

	framefile_reader_close(&t->reader);
	rc = framefile_open(&t->reader, t->path);
	t->reading = rc == 0;
	return rc;
}

static int next_frame(void *arg, const unsigned char **p, size_t *bytes)
{
	struct takeover *t = arg;
	struct frame f;
	int rc = t->reading ? 0 : open_reader(t);

	if (rc)
		return rc;
	while ((rc = framefile_next(&t->reader, &f)) > 0) {
		uint64_t end = f.head.first_seq + f.head.count;

		if (f.head.type != CREMA_FRAME_DATA || f.head.stream != t->stream ||
		    memcmp(f.head.worker, t->worker, sizeof(t->worker)) != 0 || end <= t->sent_seq)
			continue;
		*p = framefile_verbatim(&t->reader, &f, bytes);
		t->sent_seq = end;
		return 1;
	}
	return rc;
}

static void rewind_to(void *arg, uint64_t seq)
{
	struct takeover *t = arg;

	framefile_reader_close(&t->reader);
	t->reading = false;
	t->sent_seq = seq;
	if (seq >= t->end_seq)
		t->end_seq = 0;
}

static void on_acked(void *arg, uint64_t seq)
{
	struct takeover *t = arg;

	if (seq >= t->end_seq)
		t->end_seq = 0; /* all there: finished */
}

/* Reads the file once: its identity, its last hello, its last record. True: worth sending. */
static bool survey(struct takeover *t)
{
	struct frame f;
	const unsigned char *p;
	size_t n;

	t->end_seq = 0;
	if (open_reader(t))
		return false;
	while (framefile_next(&t->reader, &f) > 0) {
		uint64_t end = f.head.first_seq + f.head.count;

		if (f.head.type == CREMA_FRAME_HELLO) {
			memcpy(t->worker, f.head.worker, sizeof(t->worker));
			t->stream = f.head.stream;
			p = framefile_verbatim(&t->reader, &f, &n);
			buf_clear(&t->hello);
			buf_add(&t->hello, p, n);
		} else if (f.head.type == CREMA_FRAME_DATA && end > t->end_seq) {
			t->end_seq = end;
		}
	}
	return t->hello.len && !t->hello.error && t->end_seq;
}

static bool try_file(struct takeover *t, const char *name, uint64_t now)
{
	struct stat st;

	if (dirs_join(t->path, sizeof(t->path), t->dir, name))
		return false;
	t->fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (t->fd < 0 || fstat(t->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    labs((long)(time(NULL) - st.st_mtime)) < YOUNG_SECONDS ||
	    flock(t->fd, LOCK_EX | LOCK_NB) < 0 || !survey(t)) {
		let_go(t);
		return false;
	}
	t->source = (struct uplink_source){t,	       t->worker, t->stream, &t->hello,
					   next_frame, rewind_to, on_acked};
	rewind_to(t, 0);
	uplink_init(&t->uplink, &t->address, &t->source, t->security);
	t->linked = true;
	t->began_ns = now;
	return true;
}

/* The next file after the last one that was tried; a full round starts again at the oldest. */
static void look(struct takeover *t, uint64_t now)
{
	char **names;
	int n = framefile_list(t->dir, &names);
	bool found = false;

	for (int i = 0; i < n && !found; i++) {
		uint64_t created = framefile_created_ns(names[i]);

		if (created <= t->after)
			continue;
		t->after = created;
		found = try_file(t, names[i], now);
	}
	free(names);
	if (!found) {
		t->after = 0;
		t->look_ns = now + TAKEOVER_LOOK_NS;
	}
}

void takeover_run(struct takeover *t, bool idle, uint64_t now)
{
	if (!t->linked && idle && now >= t->look_ns)
		look(t, now);
	if (!t->linked)
		return;
	uplink_run(&t->uplink, now);
	t->uplink.has_result = false;
	if (t->end_seq == 0) {
		unlink(t->path);
		let_go(t);
	} else if (now - t->began_ns > TAKEOVER_GIVE_UP_NS) {
		let_go(t); /* another agent may take it */
	}
}

int takeover_fd(const struct takeover *t)
{
	return t->linked ? uplink_fd(&t->uplink) : -1;
}

short takeover_events(const struct takeover *t)
{
	return t->linked ? uplink_events(&t->uplink) : 0;
}
