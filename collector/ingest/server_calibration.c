/* SPDX-License-Identifier: BSD-3-Clause */
/* server_calibration.c - sends the verdicts on file systems to the agents, also when they change.
 */
#include "collector/ingest/server_conn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/calibration.h"
#include "common/log.h"

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct calibration_stamp stamp_of(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return (struct calibration_stamp){0};
	return (struct calibration_stamp){.dev = st.st_dev,
					  .ino = st.st_ino,
					  .size = (uint64_t)st.st_size,
					  .mtime_ns = ns_of(st.st_mtim),
					  .ctime_ns = ns_of(st.st_ctim)};
}

static bool is_same(const struct calibration_stamp *a, const struct calibration_stamp *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Not about what the file contains: it is read again a second later. */
static bool may_pass(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -EIO || rc == -ESTALE ||
	       rc == -EACCES || rc == -ETIMEDOUT || rc == -EINTR || rc == -EAGAIN;
}

/* Reads a changed file; true if it is used. What an unusable one contained before stays in use. */
static bool read_file(struct calibration_file *f, const char *path, bool first)
{
	struct calibration_stamp now = stamp_of(path);
	bool settled = first || is_same(&now, &f->seen);
	struct buf text = BUF_INIT;
	char line[PATH_MAX + 160];
	bool was_passing;
	int rc;

	f->seen = now;
	if (!settled || is_same(&now, &f->used))
		return false;
	rc = calibration_read(&text, path);
	if (!rc && text.len > CREMA_CALIBRATION_BYTES)
		rc = -EFBIG;
	was_passing = f->passing;
	f->passing = may_pass(rc);
	if (!f->passing)
		f->used = now;
	if (rc) {
		if (!f->passing || !was_passing)
			log_line("collect: calibration %s",
				 calibration_explain(line, sizeof(line), rc, path));
		buf_release(&text);
		return false;
	}
	buf_release(&f->text);
	f->text = text;
	return true;
}

/* All verdicts in one text, "" if there are none: 0 or -errno. */
static int merge(const struct server_calibration *c, struct buf *out)
{
	struct verdict v;
	int rc = 0;

	for (unsigned int i = 0; i < SERVER_CALIBRATIONS; i++) {
		struct text rest = {(const char *)c->file[i].text.data, c->file[i].text.len};

		if (!out->len) {
			rc = buf_add(out, rest.ptr, rest.len);
			continue;
		}
		while (!rc && calibration_next(&rest, &v))
			rc = calibration_put(out, &v);
	}
	return rc ? rc : out->len > CREMA_CALIBRATION_BYTES ? -EFBIG : 0;
}

/* It names no worker, so one frame serves all of them. */
static int make_frame(struct server_calibration *c)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_CALIBRATION, NULL, 0);
	struct buf text = BUF_INIT, frame = BUF_INIT;
	struct packed_map map;
	int rc = merge(c, &text);

	if (!rc && (text.len || c->frame.len)) {
		pack_kv_str(packed_map_begin(&map), "text", (const char *)text.data, text.len);
		rc = frame_encode_buf(&frame, &head, packed_map_end(&map));
	}
	if (!rc && frame.len) {
		buf_release(&c->frame);
		c->frame = frame;
	} else {
		buf_release(&frame); /* the one before stays */
	}
	buf_release(&text);
	return rc;
}

int server_calibration_send(struct server_conn *conn)
{
	const struct buf *frame = &conn->server->calibration.frame;

	if (!frame->len || conn->version < CREMA_PROTOCOL)
		return 0;
	return server_send_frame(conn, frame);
}

void server_calibration_check(struct server *server, bool first)
{
	struct server_calibration *c = &server->calibration;
	struct server_conn *conn, *next;
	bool changed = c->unsent, was_unsent;
	int rc;

	for (unsigned int i = 0; i < SERVER_CALIBRATIONS; i++)
		if (server->config.calibration[i])
			changed |= read_file(&c->file[i], server->config.calibration[i], first);
	if (!changed)
		return;
	rc = make_frame(c);
	was_unsent = c->unsent;
	c->unsent = may_pass(rc);
	if (rc && was_unsent)
		return;
	if (rc) {
		log_line("collect: the calibration is not sent to the workers: %s",
			 calibration_why(rc));
		return;
	}
	for (conn = server->conns; conn; conn = next) {
		next = conn->next;
		if (conn->state == CONN_OPEN)
			server_calibration_send(conn);
	}
}

void server_calibration_release(struct server_calibration *calibration)
{
	for (unsigned int i = 0; i < SERVER_CALIBRATIONS; i++)
		buf_release(&calibration->file[i].text);
	buf_release(&calibration->frame);
}
