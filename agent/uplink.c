/* SPDX-License-Identifier: BSD-3-Clause */
/* uplink.c - the connection to the collector. */
#include "agent/uplink.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/uplink_frames.h"
#include "common/clock.h"
#include "common/log.h"

#define READ_STEP (16u << 10)
#define SEND_ROUND 64 /* frames per call: the caller has other work too */

void uplink_init(struct uplink *u, const struct net_address *address,
		 const struct uplink_source *source, struct uplink_security *security)
{
	memset(u, 0, sizeof(*u));
	u->address = *address;
	u->source = source;
	u->security = security;
	u->stream.fd = -1;
	u->pause_ns = UPLINK_PAUSE_MIN_NS;
}

void uplink_release(struct uplink *u)
{
	stream_close(&u->stream);
	session_release(&u->session);
	buf_release(&u->in);
	buf_release(&u->out);
	u->state = UPLINK_OFF;
}

int uplink_fd(const struct uplink *u)
{
	return u->stream.fd;
}

short uplink_events(const struct uplink *u)
{
	if (u->state == UPLINK_CONNECTING)
		return POLLOUT;
	return (short)(POLLIN | (u->out.len || stream_unsent(&u->stream) ? POLLOUT : 0));
}

void uplink_new_hello(struct uplink *u)
{
	u->resend_hello = true;
}

void uplink_trouble(struct uplink *u, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(u->trouble, sizeof(u->trouble), format, ap);
	va_end(ap);
}

static void enter(struct uplink *u, enum uplink_state state, uint64_t now)
{
	u->state = state;
	u->since_ns = now;
}

static void hang_up(struct uplink *u, uint64_t now)
{
	stream_close(&u->stream);
	session_release(&u->session);
	buf_clear(&u->in);
	buf_clear(&u->out);
	u->outstanding = false;
	u->clock_sent_ns = 0;
	u->clock_rounds = 0;
	enter(u, UPLINK_OFF, now);
	u->retry_ns = now + u->pause_ns;
	u->pause_ns = u->pause_ns * 2 < UPLINK_PAUSE_MAX_NS ? u->pause_ns * 2 : UPLINK_PAUSE_MAX_NS;
}

/* 0, or -EPERM after saying why: what should be secret is never sent in plain text instead. */
static int make_context(struct uplink *u)
{
	struct uplink_security *s = u->security;

	if (!s || s->context || (!s->settings.on && !s->why[0]))
		return 0;
	if (s->settings.on)
		s->context = tls_context_new(&s->settings.files, false, s->why, sizeof(s->why));
	if (s->context)
		return 0;
	uplink_trouble(u, "%s", s->why);
	return -EPERM;
}

static int open_stream(struct uplink *u, int fd)
{
	if (u->security && u->security->context)
		return stream_tls(&u->stream, fd, u->security->context, u->address.host);
	stream_plain(&u->stream, fd);
	return 0;
}

static void dial(struct uplink *u, uint64_t now)
{
	char name[300];
	int fd, rc = make_context(u);

	if (rc) {
		hang_up(u, now);
		return;
	}
	fd = net_connect(&u->address);
	rc = fd < 0 ? fd : open_stream(u, fd);
	if (rc) {
		if (fd >= 0)
			close(fd);
		uplink_trouble(u, "cannot connect to %s: %s",
			       net_text(name, sizeof(name), &u->address), log_error(rc));
		hang_up(u, now);
		return;
	}
	enter(u, UPLINK_CONNECTING, now);
}

static void finish_dial(struct uplink *u, uint64_t now)
{
	struct pollfd p = {u->stream.fd, POLLOUT, 0};
	char name[300];
	int rc;

	if (poll(&p, 1, 0) <= 0)
		return;
	rc = net_connected(u->stream.fd);
	if (rc) {
		uplink_trouble(u, "cannot connect to %s: %s",
			       net_text(name, sizeof(name), &u->address), log_error(rc));
		hang_up(u, now);
		return;
	}
	enter(u, UPLINK_CHALLENGED, now);
}

/* 0 or -errno: the connection is of no use any more. */
static int receive(struct uplink *u, uint64_t now)
{
	struct frame f;
	ssize_t n, used;
	size_t at = 0;

	for (int i = 0; i < 8; i++) {
		if (buf_reserve(&u->in, READ_STEP))
			return -ENOMEM;
		n = stream_read(&u->stream, u->in.data + u->in.len, READ_STEP);
		if (n == -EAGAIN)
			break;
		if (n == -EPROTO)
			uplink_trouble(u, "%s", stream_why(&u->stream));
		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		u->in.len += (size_t)n;
		if (n < (ssize_t)READ_STEP)
			break;
	}
	while ((used = session_frame(&u->session, &f, u->in.data + at, u->in.len - at)) > 0) {
		int rc = uplink_frame(u, &f, now);

		if (rc)
			return rc;
		at += (size_t)used;
	}
	buf_consume(&u->in, at);
	if (used == -EAGAIN || at == u->in.len)
		return 0;
	uplink_trouble(u, u->session.sealed
				  ? "what the collector sent was changed on its way"
				  : "what answers there is no crema collector of this version");
	return -EPROTO;
}

static int drain_out(struct uplink *u)
{
	while (u->out.len) {
		ssize_t n = stream_write(&u->stream, u->out.data, u->out.len);

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return (int)n;
		buf_consume(&u->out, (size_t)n);
	}
	return 0;
}

static int send_frames(struct uplink *u, uint64_t now)
{
	const unsigned char *p;
	size_t n;
	int rc = drain_out(u);

	for (int i = 0; !rc && !u->out.len && i < SEND_ROUND; i++) {
		if (u->resend_hello) {
			u->resend_hello = false;
			rc = uplink_hello(u);
		} else if (uplink_clock_due(u, now)) {
			uplink_clock_send(u);
		} else {
			rc = u->source->next(u->source->arg, &p, &n);
			if (rc <= 0)
				break;
			if (!u->outstanding)
				u->unanswered_ns = now;
			u->outstanding = true;
			rc = session_send(&u->session, &u->out, p, n);
		}
		rc = rc < 0 ? rc : u->out.error ? u->out.error : drain_out(u);
	}
	return rc < 0 ? rc : 0;
}

static bool too_long(const struct uplink *u, uint64_t now)
{
	if (u->state != UPLINK_READY)
		return now - u->since_ns > UPLINK_TIMEOUT_NS;
	return u->outstanding && now - u->unanswered_ns > UPLINK_SILENCE_NS;
}

void uplink_run(struct uplink *u, uint64_t now)
{
	int rc = 0;

	if (u->state == UPLINK_OFF && now >= u->retry_ns)
		dial(u, now);
	if (u->state == UPLINK_CONNECTING)
		finish_dial(u, now);
	if (u->state >= UPLINK_CHALLENGED)
		rc = receive(u, now);
	if (!rc && u->state == UPLINK_READY)
		rc = send_frames(u, now);
	else if (!rc && u->state > UPLINK_CHALLENGED)
		rc = drain_out(u);
	else if (rc == -EACCES)
		drain_out(u); /* why we go */
	if (!rc && u->state != UPLINK_OFF && too_long(u, now))
		rc = -ETIMEDOUT;
	/* A collector with TLS waits for the first word, one without says it. */
	if (rc == -ETIMEDOUT && u->state == UPLINK_CHALLENGED && !u->in.len)
		uplink_trouble(u, "no answer: a collector that requires TLS "
				  "does so (see CREMA_TLS_CA_FILE)");
	if (!rc)
		return;
	if (!u->trouble[0])
		uplink_trouble(u, "the connection to the collector broke: %s", log_error(rc));
	hang_up(u, now);
}
