/* SPDX-License-Identifier: BSD-3-Clause */
/* uplink_frames.c - what each frame of the collector means, and the clock exchange. */
#include "agent/uplink_frames.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/pack.h"
#include "switch.h"

/* Appends a frame of the map to what is to be sent. */
static int put_frame(struct uplink *u, uint8_t type, struct packed_map *map)
{
	struct crema_frame_header head = frame_head(type, u->source->worker, u->source->stream);

	return session_send_map(&u->session, &u->out, &head, map);
}

int uplink_hello(struct uplink *u)
{
	return session_send(&u->session, &u->out, u->source->hello->data, u->source->hello->len);
}

static bool is_insecure(void)
{
	return crema_switch(getenv("CREMA_INSECURE"), 0) == 1;
}

/*
 * 1: there is a token; 0: there is none, and may be none; else -errno with why. Only where no file
 * was named, none is there and none has ever been, it may be missing: a token that cannot be read
 * must not make it send to any listener.
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
		uplink_trouble(u,
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

/* Nothing of ours was told so far. */
static int on_proof(struct uplink *u, const msgpack_object *map, uint64_t now)
{
	struct packed_map answer;
	char name[300];
	int rc;

	if (u->state != UPLINK_PROVING)
		return -EPROTO;
	rc = session_proof(&u->session, map, &u->out);
	if (rc == -EACCES) {
		uplink_trouble(u, "the collector at %.190s does not know the token",
			       net_text(name, sizeof(name), &u->address));
		pack_kv_text(packed_map_begin(&answer), "reason", "wrong token");
		put_frame(u, CREMA_FRAME_REFUSE, &answer);
	}
	if (!rc)
		rc = uplink_hello(u);
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
	uplink_trouble(u, "the collector refuses: %.120s%s%.110s", reason, own[0] ? "; " : "", own);
	return -ECONNREFUSED;
}

static void on_clock(struct uplink *u, const msgpack_object *map, uint64_t now)
{
	uint64_t t2 = clock_real_ns(), t0 = get_u64(map, "t0", 0), t1 = get_u64(map, "t1", 0);

	if (!u->clock_sent_ns || t0 != u->clock_sent_ns || !t1)
		return;
	u->clock_sent_ns = 0;
	if (t2 < t0)
		return; /* our clock was set back in between */
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

void uplink_clock_send(struct uplink *u)
{
	struct packed_map question;

	u->clock_sent_ns = clock_real_ns();
	pack_kv_u64(packed_map_begin(&question), "t0", u->clock_sent_ns);
	put_frame(u, CREMA_FRAME_CLOCK, &question);
}

static int on_welcome(struct uplink *u, uint64_t seq, uint64_t now)
{
	if (u->state == UPLINK_READY) {
		/* The answer to a later hello: what it says is journaled, as an acknowledgement. */
		u->source->acked(u->source->arg, seq);
		return 0;
	}
	if (u->state != UPLINK_GREETING)
		return -EPROTO;
	u->state = UPLINK_READY;
	u->pause_ns = UPLINK_PAUSE_MIN_NS;
	u->clock_next_ns = now;
	u->trouble[0] = '\0';
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
	case CREMA_FRAME_REFUSE:
		return on_refuse(u, map);
	case CREMA_FRAME_CLOCK:
		on_clock(u, map, now);
		return 0;
	default:
		return 0;
	}
}

int uplink_frame(struct uplink *u, const struct frame *f, uint64_t now)
{
	struct buf scratch = BUF_INIT;
	const unsigned char *raw;
	struct unpack body;
	int rc;

	if (f->head.type == CREMA_FRAME_ACK) {
		if (u->state != UPLINK_READY)
			return -EPROTO;
		u->outstanding = false;
		u->source->acked(u->source->arg, f->head.first_seq);
		return 0;
	}
	rc = frame_payload(f, &scratch, &raw);
	if (!rc)
		rc = unpack_open(&body, raw, f->head.raw_bytes);
	if (!rc) {
		rc = on_map(u, f, &body.root, now);
		unpack_release(&body);
	}
	buf_release(&scratch);
	return rc;
}
