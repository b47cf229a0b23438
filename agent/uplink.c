/* SPDX-License-Identifier: BSD-3-Clause */
/* uplink.c - the connection to the collector. */
#include "agent/uplink.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/calibration.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/pack.h"
#include "switch.h"

__attribute__((format(printf, 2, 3))) static void trouble(struct uplink *u, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(u->trouble, sizeof(u->trouble), format, ap);
	va_end(ap);
}

/* Appends a frame with the map to the output. */
static int put_frame(struct uplink *u, uint8_t type, struct packed_map *map)
{
	struct crema_frame_header head = frame_head(type, u->source->worker, u->source->stream);

	return session_send_map(&u->session, &u->out, &head, map);
}

static int say_hello(struct uplink *u)
{
	return session_send(&u->session, &u->out, u->source->hello->data, u->source->hello->len);
}

static bool is_insecure(void)
{
	return crema_switch(getenv("CREMA_INSECURE"), 0) == 1;
}

/*
 * 1: there is a token; 0: there is none, and may be none; else -errno with why. It may be missing
 * only if no file was named, none exists and none ever has: with a token that cannot be read the
 * agent must not send to just any listener.
 */
static int find_token(struct uplink *u, struct auth_token *token)
{
	const char *named = getenv("CREMA_TOKEN_FILE");
	char path[PATH_MAX] = "";
	int rc;

	if (is_insecure())
		return 0;
	rc = auth_token_path(path, sizeof(path), NULL);
	if (!rc)
		rc = auth_token_read(token, path);
	u->had_token = u->had_token || !rc;
	if (!rc)
		return 1;
	auth_explain(u->trouble, sizeof(u->trouble), rc, path);
	return rc != -ENOENT || u->had_token || (named && *named) ? rc : 0;
}

static int on_challenge(struct uplink *u, const msgpack_object *map, uint64_t now)
{
	struct auth_token token;
	int rc;

	if (u->state != UPLINK_CHALLENGED)
		return -EPROTO;
	u->trouble[0] = '\0';
	rc = find_token(u, &token);
	if (rc >= 0)
		rc = session_answer(&u->session, rc ? &token : NULL, map, u->source->worker,
				    &u->out);
	auth_forget(&token, sizeof(token));
	if (rc == -EPROTONOSUPPORT)
		trouble(u,
			"the collector speaks versions %u to %u of the protocol, this agent "
			"%u; use the same release of crema on both",
			(unsigned int)u->session.oldest, (unsigned int)u->session.newest,
			CREMA_PROTOCOL);
	if (rc)
		return rc;
	u->state = UPLINK_PROVING;
	u->since_ns = now;
	return 0;
}

/* Nothing of ours was sent so far. */
static int on_proof(struct uplink *u, const msgpack_object *map, uint64_t now)
{
	struct packed_map answer;
	char name[300];
	int rc;

	if (u->state != UPLINK_PROVING)
		return -EPROTO;
	rc = session_proof(&u->session, map, &u->out);
	if (rc == -EACCES) {
		trouble(u, "the collector at %.190s does not know the token",
			net_text(name, sizeof(name), &u->address));
		pack_kv_text(packed_map_begin(&answer), "reason", "wrong token");
		put_frame(u, CREMA_FRAME_REFUSE, &answer);
	}
	if (!rc)
		rc = say_hello(u);
	if (rc)
		return rc;
	u->resend_hello = false;
	u->state = UPLINK_GREETING;
	u->since_ns = now;
	return 0;
}

static int on_refuse(struct uplink *u, const msgpack_object *map)
{
	char reason[200];
	char own[256];

	text_copy(reason, sizeof(reason), get_text(map, "reason"));
	memcpy(own, u->trouble, sizeof(own)); /* why we had no token, if we had none */
	trouble(u, "the collector refuses: %.120s%s%.110s", reason, own[0] ? "; " : "", own);
	return -ECONNREFUSED;
}

static void on_clock(struct uplink *u, const msgpack_object *map, uint64_t now)
{
	uint64_t t2 = clock_real_ns(), t0 = get_u64(map, "t0", 0), t1 = get_u64(map, "t1", 0);

	if (!u->clock_sent_ns || t0 != u->clock_sent_ns || !t1)
		return;
	u->clock_sent_ns = 0;
	if (t2 < t0)
		return; /* our clock was set back meanwhile */
	if (u->clock_rounds == 0 || (t2 - t0) / 2 < u->best.error_ns) {
		u->best.boot_ns = clock_boot_ns();
		u->best.real_ns = clock_real_ns();
		u->best.error_ns = (t2 - t0) / 2;
		u->best.offset_ns = (int64_t)(t1 - (t0 + (t2 - t0) / 2));
	}
	if (++u->clock_rounds < UPLINK_CLOCK_ROUNDS)
		return;
	u->clock_rounds = 0;
	u->clock_next_ns = now + UPLINK_CLOCK_NS;
	u->result = u->best;
	u->has_result = true;
}

bool uplink_clock_due(struct uplink *u, uint64_t now)
{
	return !u->clock_sent_ns && now >= u->clock_next_ns;
}

static void send_clock(struct uplink *u)
{
	struct packed_map question;

	u->clock_sent_ns = clock_real_ns();
	pack_kv_u64(packed_map_begin(&question), "t0", u->clock_sent_ns);
	put_frame(u, CREMA_FRAME_CLOCK, &question);
}

/* Before the collector's proof, anyone could have sent it. */
static int on_calibration(struct uplink *u, const msgpack_object *map)
{
	if (u->state < UPLINK_GREETING)
		return -EPROTO;
	u->calibration_error = calibration_unpack(&u->calibration, map);
	u->was_sent = u->has_calibration = true;
	return 0;
}

/* There are none, or it is older and does not send them. */
static void without_calibration(struct uplink *u)
{
	buf_clear(&u->calibration);
	u->calibration_error = 0;
	u->has_calibration = true;
}

static int on_welcome(struct uplink *u, uint64_t seq, uint64_t now)
{
	if (u->state == UPLINK_READY) {
		/* The response to a later hello: its position is journaled, as with an
		 * acknowledgement. */
		u->source->acked(u->source->arg, seq);
		return 0;
	}
	if (u->state != UPLINK_GREETING)
		return -EPROTO;
	u->state = UPLINK_READY;
	u->pause_ns = UPLINK_PAUSE_MIN_NS;
	u->clock_next_ns = now;
	u->trouble[0] = '\0';
	if (!u->was_sent)
		without_calibration(u);
	u->source->rewind(u->source->arg, seq);
	return 0;
}

static int on_map(struct uplink *u, const struct frame *f, const msgpack_object *map, uint64_t now)
{
	switch (f->head.type) {
	case CREMA_FRAME_CHALLENGE:
		return on_challenge(u, map, now);
	case CREMA_FRAME_PROOF:
		return on_proof(u, map, now);
	case CREMA_FRAME_WELCOME:
		return on_welcome(u, f->head.first_seq, now);
	case CREMA_FRAME_CALIBRATION:
		return on_calibration(u, map);
	case CREMA_FRAME_REFUSE:
		return on_refuse(u, map);
	case CREMA_FRAME_CLOCK:
		on_clock(u, map, now);
		return 0;
	default:
		return 0;
	}
}

static int take_frame(struct uplink *u, const struct frame *f, uint64_t now)
{
	struct buf scratch = BUF_INIT;
	struct unpack body;
	int rc;

	if (f->head.type == CREMA_FRAME_ACK) {
		if (u->state != UPLINK_READY)
			return -EPROTO;
		u->outstanding = false;
		u->source->acked(u->source->arg, f->head.first_seq);
		return 0;
	}
	rc = unpack_frame(&body, f, &scratch);
	if (!rc) {
		rc = on_map(u, f, &body.root, now);
		unpack_release(&body);
	}
	buf_release(&scratch);
	return rc;
}

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
	buf_release(&u->calibration);
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
	u->was_sent = false;
	u->clock_sent_ns = 0;
	u->clock_rounds = 0;
	enter(u, UPLINK_OFF, now);
	u->retry_ns = now + u->pause_ns;
	u->pause_ns = u->pause_ns * 2 < UPLINK_PAUSE_MAX_NS ? u->pause_ns * 2 : UPLINK_PAUSE_MAX_NS;
}

/* 0, or -EPERM after reporting why: what should be secret is never sent in plain text instead. */
static int make_context(struct uplink *u)
{
	struct uplink_security *s = u->security;

	if (!s || s->context || (!s->settings.on && !s->why[0]))
		return 0;
	if (s->settings.on)
		s->context = tls_context_new(&s->settings.files, false, s->why, sizeof(s->why));
	if (s->context)
		return 0;
	trouble(u, "%s", s->why);
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
		trouble(u, "cannot connect to %s: %s", net_text(name, sizeof(name), &u->address),
			log_error(rc));
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
		trouble(u, "cannot connect to %s: %s", net_text(name, sizeof(name), &u->address),
			log_error(rc));
		hang_up(u, now);
		return;
	}
	enter(u, UPLINK_CHALLENGED, now);
}

/* 0 or -errno: the connection is unusable. */
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
			trouble(u, "%s", stream_why(&u->stream));
		if (n <= 0)
			return n ? (int)n : -ECONNRESET;
		u->in.len += (size_t)n;
		if (n < (ssize_t)READ_STEP)
			break;
	}
	while ((used = session_frame(&u->session, &f, u->in.data + at, u->in.len - at)) > 0) {
		int rc = take_frame(u, &f, now);

		if (rc)
			return rc;
		at += (size_t)used;
	}
	buf_consume(&u->in, at);
	if (used == -EAGAIN || at == u->in.len)
		return 0;
	trouble(u, u->session.sealed ? "what the collector sent was changed on its way"
				     : "the program that answers there is not a crema collector of "
				       "this version");
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
			rc = say_hello(u);
		} else if (uplink_clock_due(u, now)) {
			send_clock(u);
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
		drain_out(u); /* why we leave */
	if (!rc && u->state != UPLINK_OFF && too_long(u, now))
		rc = -ETIMEDOUT;
	/* A collector with TLS waits for the first bytes, one without sends them. */
	if (rc == -ETIMEDOUT && u->state == UPLINK_CHALLENGED && !u->in.len)
		trouble(u, "no answer: a collector that requires TLS "
			   "does so (see CREMA_TLS_CA_FILE)");
	if (!rc)
		return;
	if (!u->trouble[0])
		trouble(u, "the connection to the collector broke: %s", log_error(rc));
	hang_up(u, now);
}
