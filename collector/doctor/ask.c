/* SPDX-License-Identifier: BSD-3-Clause */
/* ask.c - CHALLENGE, AUTH, PROOF, and CLOCK or REFUSE. */
#include "collector/doctor/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/session.h"
#include "common/tls_settings.h"

#define MOST_NS 10000000000u
#define STEP_BYTES 4096
#define WHY(a, ...) snprintf((a)->why, sizeof((a)->why), __VA_ARGS__)

struct handshake {
	struct stream stream;
	struct session session;
	struct buf in, out;
	struct auth_token token;
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t deadline_ns, sent_ns;
	bool done;
};

static int put_clock(struct handshake *t)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_CLOCK, t->worker, 1);
	struct packed_map question;

	t->sent_ns = clock_real_ns();
	pack_kv_u64(packed_map_begin(&question), "t0", t->sent_ns);
	return session_send_map(&t->session, &t->out, &head, &question);
}

static int on_challenge(struct ask *a, struct handshake *t, const msgpack_object *map)
{
	int err;

	if (a->challenged)
		return -EPROTO;
	err = session_answer(&t->session, t->token.len ? &t->token : NULL, map, t->worker, &t->out);
	a->oldest = t->session.oldest;
	a->newest = t->session.newest;
	a->challenged = err != -EPROTO;
	if (err == -EPROTONOSUPPORT)
		WHY(a, "it supports versions %llu to %llu of the protocol, this crema version %u",
		    (unsigned long long)a->oldest, (unsigned long long)a->newest, CREMA_PROTOCOL);
	return err;
}

static int on_proof(struct ask *a, struct handshake *t, const msgpack_object *map)
{
	int err = session_proof(&t->session, map, &t->out);

	if (err == -EACCES) {
		a->unproved = true;
		WHY(a, "it does not know the token");
	}
	return err ? err : put_clock(t);
}

static int on_frame(struct ask *a, struct handshake *t, uint8_t type, const msgpack_object *map)
{
	uint64_t now = clock_real_ns(), t1 = get_u64(map, "t1", 0);
	char reason[200];

	if (type == CREMA_FRAME_CHALLENGE)
		return on_challenge(a, t, map);
	if (type == CREMA_FRAME_PROOF)
		return a->challenged && !t->sent_ns ? on_proof(a, t, map) : -EPROTO;
	if (type == CREMA_FRAME_REFUSE) {
		WHY(a, "it refuses: %s",
		    text_copy(reason, sizeof(reason), get_text(map, "reason")));
		return -EACCES;
	}
	if (type != CREMA_FRAME_CLOCK || get_u64(map, "t0", 0) != t->sent_ns || !t1 ||
	    now < t->sent_ns)
		return -EPROTO;
	a->error_ns = (now - t->sent_ns) / 2;
	a->offset_ns = (int64_t)(t1 - (t->sent_ns + a->error_ns));
	a->accepted = t->done = true;
	return 0;
}

static int take_frames(struct ask *a, struct handshake *t)
{
	struct buf scratch = BUF_INIT;
	struct unpack map;
	struct frame f;
	ssize_t used = 0;
	int err = 0;

	while (!err && !t->done &&
	       (used = session_frame(&t->session, &f, t->in.data, t->in.len)) > 0) {
		err = unpack_frame(&map, &f, &scratch);
		if (!err) {
			err = on_frame(a, t, f.head.type, &map.root);
			unpack_release(&map);
		}
		buf_consume(&t->in, (size_t)used);
	}
	buf_release(&scratch);
	if (!err && used < 0 && used != -EAGAIN)
		err = -EPROTO;
	if (err && !a->why[0])
		WHY(a, "the program that answers there is not a crema collector");
	return err;
}

/* One turn of waiting, writing and reading. */
static int turn(struct ask *a, struct handshake *t)
{
	bool write = t->out.len || stream_unsent(&t->stream);
	struct pollfd p = {t->stream.fd, (short)(POLLIN | (write ? POLLOUT : 0)), 0};
	uint64_t now = clock_mono_ns();
	ssize_t n;

	if (now >= t->deadline_ns || poll(&p, 1, (int)((t->deadline_ns - now) / 1000000 + 1)) == 0)
		return -ETIMEDOUT;
	n = t->out.len ? stream_write(&t->stream, t->out.data, t->out.len) : 0;
	if (n > 0)
		buf_consume(&t->out, (size_t)n);
	if (n < 0 && n != -EAGAIN)
		return (int)n;
	if (buf_reserve(&t->in, STEP_BYTES))
		return -ENOMEM;
	n = stream_read(&t->stream, t->in.data + t->in.len, STEP_BYTES);
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	t->in.len += (size_t)n;
	return take_frames(a, t);
}

static int open_stream(struct ask *a, struct handshake *t, const struct net_address *address,
		       struct tls_context **context)
{
	struct tls_settings settings;
	struct pollfd p = {-1, POLLOUT, 0};
	int err = tls_settings_from_environment(&settings, "worker", a->why, sizeof(a->why));

	if (err)
		return err;
	a->tls = settings.on;
	if (a->tls && !(*context = tls_context_new(&settings.files, false, a->why, sizeof(a->why))))
		return -EINVAL;
	p.fd = net_connect(address);
	if (p.fd < 0)
		return p.fd;
	err = poll(&p, 1, (int)(MOST_NS / 1000000)) <= 0 ? -ETIMEDOUT : net_connected(p.fd);
	if (!err && a->tls)
		err = stream_tls(&t->stream, p.fd, *context, address->host);
	else if (!err)
		stream_plain(&t->stream, p.fd);
	if (err)
		close(p.fd);
	else
		a->connected = true;
	return err;
}

int ask_collector(struct ask *a, const struct net_address *address, const char *token_file)
{
	struct tls_context *context = NULL;
	struct handshake t = {.stream = {.fd = -1}, .deadline_ns = clock_mono_ns() + MOST_NS};
	char path[PATH_MAX];
	int err;

	*a = (struct ask){0};
	a->had_token = !auth_token_path(path, sizeof(path), token_file) &&
		       !auth_token_read(&t.token, path);
	err = auth_random(t.worker, sizeof(t.worker));
	if (!err)
		err = open_stream(a, &t, address, &context);
	while (!err && !t.done)
		err = turn(a, &t);
	if (err && !a->why[0] && a->tls && stream_why(&t.stream)[0])
		WHY(a, "%s", stream_why(&t.stream));
	if (err == -ETIMEDOUT && a->connected && !a->challenged && !a->why[0])
		WHY(a, "no answer: no collector, or one that requires TLS (see "
		       "CREMA_TLS_CA_FILE)");
	if (err && !a->why[0])
		WHY(a, "%s", log_error(err));
	auth_forget(&t.token, sizeof(t.token));
	session_release(&t.session);
	stream_close(&t.stream);
	buf_release(&t.in);
	buf_release(&t.out);
	tls_context_free(context);
	return err;
}
