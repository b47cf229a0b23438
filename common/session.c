/* SPDX-License-Identifier: BSD-3-Clause */
/* session.c - the agent's side of a connection's handshake, and its frames from then on. */
#include "common/session.h"

#include <errno.h>
#include <string.h>

int session_answer(struct session *s, const struct auth_token *token,
		   const msgpack_object *challenge, const uint8_t *worker, struct buf *out)
{
	struct text nonce = get_bin(challenge, "nonce");
	struct crema_frame_header head = frame_head(CREMA_FRAME_AUTH, worker, 0);
	struct auth_start *start = &s->start;
	struct packed_map answer;
	msgpack_packer *pk;
	int rc;

	s->oldest = get_u64(challenge, "min", 0);
	s->newest = get_u64(challenge, "max", 0);
	if (!nonce.ptr || nonce.len != AUTH_NONCE_BYTES || s->oldest > UINT8_MAX ||
	    s->newest > UINT8_MAX)
		return -EPROTO;
	if (s->oldest > CREMA_PROTOCOL || s->newest < CREMA_PROTOCOL)
		return -EPROTONOSUPPORT;
	start->min = (uint8_t)s->oldest;
	start->max = (uint8_t)s->newest;
	start->version = CREMA_PROTOCOL;
	memcpy(start->collector_nonce, nonce.ptr, nonce.len);
	memcpy(start->worker, worker, sizeof(start->worker));
	s->has_token = token != NULL;
	rc = token ? auth_random(start->agent_nonce, sizeof(start->agent_nonce)) : 0;
	if (!rc && token)
		rc = auth_keys(token, start, &s->keys);
	if (rc)
		return rc;
	pk = packed_map_begin(&answer);
	pack_kv_u64(pk, "version", CREMA_PROTOCOL);
	pack_kv_bin(pk, "nonce", token ? start->agent_nonce : NULL, sizeof(start->agent_nonce));
	return frame_encode_buf(out, &head, packed_map_end(&answer));
}

int session_proof(struct session *s, const msgpack_object *proof, struct buf *out)
{
	struct crema_frame_header head = frame_head(CREMA_FRAME_PROOF, s->start.worker, 0);
	struct text mac = get_bin(proof, "mac");
	struct buf frame = BUF_INIT;
	int rc;
	struct evp_cipher_ctx_st *cipher;

	if (!s->has_token)
		return 0;
	if (!mac.ptr || mac.len != AUTH_MAC_BYTES || !auth_equal(mac.ptr, s->keys.proof, mac.len))
		return -EACCES;
	cipher = seal_cipher_new();
	if (!cipher)
		return -ENOMEM;
	seal_init(&s->in, cipher, s->keys.to_agent);
	seal_init(&s->out, cipher, s->keys.to_collector);
	auth_forget(&s->keys, sizeof(s->keys));
	s->sealed = true;
	/* A small one: until it has opened this one, the collector accepts no larger record. */
	rc = frame_encode(&frame, &head, NULL, 0);
	if (!rc)
		rc = session_send(s, out, frame.data, frame.len);
	buf_release(&frame);
	return rc;
}

int session_send(struct session *s, struct buf *out, const void *frame, size_t bytes)
{
	return s->sealed ? seal_put(&s->out, out, frame, bytes) : buf_add(out, frame, bytes);
}

int session_send_map(struct session *s, struct buf *out, const struct crema_frame_header *head,
		     struct packed_map *map)
{
	struct buf frame = BUF_INIT;
	int rc = frame_encode_buf(&frame, head, packed_map_end(map));

	if (!rc)
		rc = session_send(s, out, frame.data, frame.len);
	buf_release(&frame);
	return rc;
}

ssize_t session_frame(struct session *s, struct frame *f, const void *p, size_t n)
{
	ssize_t used;

	if (!s->sealed)
		return frame_decode(f, p, n);
	used = seal_open(&s->in, &s->plain, p, n, FRAME_MAX_BYTES);
	if (used == -EMSGSIZE)
		return -EBADMSG;
	if (used < 0)
		return used;
	if (frame_decode(f, s->plain.data, s->plain.len) != (ssize_t)s->plain.len)
		return -EBADMSG;
	seal_next(&s->in);
	return used;
}

void session_release(struct session *s)
{
	seal_cipher_free(s->in.cipher);
	buf_release(&s->plain);
	auth_forget(s, sizeof(*s));
}
