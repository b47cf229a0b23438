/* SPDX-License-Identifier: BSD-3-Clause */
/* uplink_frames.c - what each frame of the collector means, and the clock exchange. */
#include "agent/uplink_frames.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "common/clock.h"
#include "common/pack.h"

/* Appends a frame to what is to be sent. */
static int put_frame(struct uplink *u, uint8_t type, const struct buf *raw)
{
	struct crema_frame_header head =
		frame_head(type, u->source->worker, u->source->stream);

	if (raw->error)
		return raw->error;
	return frame_encode(&u->out, &head, raw->data, raw->len);
}

static int put_auth(struct uplink *u, const uint8_t *nonce)
{
	uint8_t mine[AUTH_NONCE_BYTES], mac[AUTH_MAC_BYTES];
	char path[PATH_MAX];
	struct auth_token token;
	struct buf raw = BUF_INIT;
	msgpack_packer pk;
	int rc = auth_random(mine, sizeof(mine));
	int no_token = auth_token_path(path, sizeof(path), NULL);

	if (rc)
		return rc;
	if (!no_token)
		no_token = auth_token_read(&token, path);
	if (no_token)
		auth_explain(u->trouble, sizeof(u->trouble), no_token, path);
	else
		rc = auth_mac(&token, nonce, mine, u->source->worker, mac);
	memset(&token, 0, sizeof(token));
	pack_init(&pk, &raw);
	pack_map(&pk, 3);
	pack_kv_u64(&pk, "version", CREMA_WIRE_VERSION);
	pack_kv_bin(&pk, "nonce", mine, sizeof(mine));
	pack_text(&pk, "mac");
	/* Without a token we go on: the collector may run with --insecure. */
	if (no_token || rc)
		pack_nil(&pk);
	else
		pack_bin(&pk, mac, sizeof(mac));
	rc = rc ? rc : put_frame(u, CREMA_FRAME_AUTH, &raw);
	buf_release(&raw);
	return rc;
}

static int on_challenge(struct uplink *u, const msgpack_object *map, uint64_t now)
{
	struct text nonce = get_bin(map, "nonce");
	uint64_t min = get_u64(map, "min", 0), max = get_u64(map, "max", 0);
	int rc;

	if (u->state != UPLINK_CHALLENGED || !nonce.ptr || nonce.len != AUTH_NONCE_BYTES)
		return -EPROTO;
	if (min > CREMA_WIRE_VERSION || max < CREMA_WIRE_OLDEST) {
		uplink_trouble(u, "the collector speaks versions %u to %u of the protocol, this "
			       "agent %u; use the same release of crema on both",
			       (unsigned int)min, (unsigned int)max, CREMA_WIRE_VERSION);
		return -EPROTONOSUPPORT;
	}
	u->trouble[0] = '\0';
	rc = put_auth(u, (const uint8_t *)nonce.ptr);
	if (!rc)
		rc = buf_add(&u->out, u->source->hello->data, u->source->hello->len);
	u->resend_hello = false;
	u->state = UPLINK_GREETING;
	u->since_ns = now;
	return rc;
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
	struct buf raw = BUF_INIT;
	msgpack_packer pk;

	u->clock_sent_ns = clock_real_ns();
	pack_init(&pk, &raw);
	pack_map(&pk, 1);
	pack_kv_u64(&pk, "t0", u->clock_sent_ns);
	put_frame(u, CREMA_FRAME_CLOCK, &raw);
	buf_release(&raw);
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
	u->since_ns = now;
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
		u->heard_ns = now;
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
