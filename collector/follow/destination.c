/* SPDX-License-Identifier: BSD-3-Clause */
/* destination.c - common code of all kinds in destination.h. */
#include "collector/follow/destination.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"

#define WAIT_MS 200

static const struct destination_kind *kind_of(const char *name)
{
	if (!strncmp(name, "nats://", 7) || !strncmp(name, "tls://", 6))
		return &destination_nats;
	if (!strncmp(name, "tcp:", 4) || !strncmp(name, "unix:", 5))
		return &destination_socket;
	return &destination_file;
}

int destination_open(struct destination *d, const struct destination_way *way, const char *data_dir,
		     const volatile sig_atomic_t *stop)
{
	int rc;

	memset(d, 0, sizeof(*d));
	d->kind = kind_of(way->name);
	d->name = way->name;
	d->way = *way;
	d->data_dir = data_dir;
	d->stop = stop;
	d->fd = -1;
	rc = d->kind->open(d);
	d->put = d->last;
	if (rc)
		destination_close(d);
	return rc;
}

static int hold(struct destination *d, const char *line, size_t n)
{
	buf_add(&d->out, line, n);
	return d->out.len < d->kind->hold_bytes && !d->out.error ? 0 : destination_write(d);
}

int destination_put(struct destination *d, const char *line, size_t n, const struct record *r)
{
	int rc = d->kind->put ? d->kind->put(d, line, n, r) : hold(d, line, n);

	if (!rc)
		d->put = r->at;
	return rc;
}

int destination_settle(struct destination *d)
{
	return d->kind->settle(d);
}

void destination_close(struct destination *d)
{
	if (d->kind->close)
		d->kind->close(d);
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	buf_release(&d->out);
}

int destination_fail(struct destination *d, int error, const char *format, ...)
{
	va_list args;
	size_t n;

	va_start(args, format);
	vsnprintf(d->why, sizeof(d->why), format, args);
	va_end(args);
	n = strlen(d->why);
	if (error)
		snprintf(d->why + n, sizeof(d->why) - n, ": %s", log_error(error));
	return error ? -(error < 0 ? -error : error) : -EINVAL;
}

int destination_take_line(struct destination *d, const char *line, size_t n)
{
	json_t *json = json_loadb(line, n, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
	const char *at = json_string_value(json_object_get(json, "at"));
	const char *id = json_string_value(json_object_get(json, "id"));
	bool read = at && id && strlen(id) < sizeof(d->last_id) && place_read(&d->last, at);

	if (read)
		memcpy(d->last_id, id, strlen(id) + 1);
	json_decref(json);
	return read ? 0
		    : destination_fail(d, 0,
				       "it does not end with a record of 'crema follow': give a "
				       "new one");
}

int destination_write(struct destination *d)
{
	struct pollfd wait = {.fd = d->fd, .events = POLLOUT};
	size_t done = 0;
	ssize_t n;

	if (d->out.error)
		return destination_fail(d, ENOMEM, "cannot write");
	while (done < d->out.len) {
		n = write(d->fd, d->out.data + done, d->out.len - done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			return destination_fail(d, errno, "cannot write");
		else if (*d->stop)
			return destination_fail(d, EINTR, "cannot write");
		else if (n < 0 && errno == EAGAIN)
			poll(&wait, 1, WAIT_MS);
	}
	buf_clear(&d->out);
	return 0;
}
