/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - the agent's side of a connection's handshake, and its frames from then on.
 *
 * For the agent's uplink and for `crema doctor`, which connects as an agent does. It uses no
 * socket:
 *
 *	CHALLENGE -> session_answer() -> AUTH to be sent
 *	PROOF	  -> session_proof()  -> PROOF to be sent, if sealed; then HELLO
 *	session_send(), session_frame(): frames out and in, sealed if the token was proved
 *
 * A zeroed struct is a new session; release it before it is used for another connection.
 */
#ifndef CREMA_COMMON_SESSION_H
#define CREMA_COMMON_SESSION_H

#include "common/auth.h"
#include "common/frame.h"
#include "common/pack.h"
#include "common/seal.h"

struct session {
	uint64_t oldest, newest; /* versions that the collector offered */
	bool has_token, sealed;
	struct auth_start start;
	struct auth_keys keys;
	struct seal in, out;
	struct buf plain; /* of the last sealed record */
};

/*
 * Appends AUTH to out. token NULL: the agent has none and sends to any collector that answers. 0,
 * -EPROTO (no challenge), -EPROTONOSUPPORT (no common version), -ENOMEM or -errno.
 */
int session_answer(struct session *s, const struct auth_token *token,
		   const msgpack_object *challenge, const uint8_t *worker, struct buf *out);
/*
 * Appends the proof of our token, and from then on all is sealed; nothing without a token. 0;
 * -EACCES: the collector does not have our token; -ENOMEM.
 */
int session_proof(struct session *s, const msgpack_object *proof, struct buf *out);
/* Appends one complete frame. 0 or -ENOMEM. */
int session_send(struct session *s, struct buf *out, const void *frame, size_t bytes);
/* Ends the map and appends a frame of it; `head` as for frame_encode(). 0 or -errno. */
int session_send_map(struct session *s, struct buf *out, const struct crema_frame_header *head,
		     struct packed_map *map);
/*
 * As frame_decode(); f->stored points into p or into the session, until the next call. A sealed
 * record that does not open, or holds anything but one frame, is -EBADMSG.
 */
ssize_t session_frame(struct session *s, struct frame *f, const void *p, size_t n);
void session_release(struct session *s);

#endif
