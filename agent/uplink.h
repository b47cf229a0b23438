/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uplink.h - the connection to the collector: connects, lets it prove the token, sends, takes
 * acknowledgements and verdicts on file systems, exchanges clocks; retries with growing pauses when
 * it breaks.
 *
 * An agent that has a token sends only a random number until the collector has proved that it has
 * the same one, and everything afterwards is sealed (common/session.h). An agent that finds no
 * token file sends to any collector that answers; one that has had a token, or whose file is
 * unusable, does not. CREMA_INSECURE=on: as if there were no token.
 *
 * What is sent comes from a source (the agent's outbox, or a dead agent's spool file). Nothing
 * blocks: the caller polls uplink_fd() for uplink_events() until uplink_due(), then calls
 * uplink_run(). One thread.
 */
#ifndef CREMA_AGENT_UPLINK_H
#define CREMA_AGENT_UPLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/net.h"
#include "common/session.h"
#include "common/tls_settings.h"

#define UPLINK_PAUSE_MIN_NS 250000000u
#define UPLINK_PAUSE_MAX_NS 5000000000u
#define UPLINK_TIMEOUT_NS 5000000000u  /* connect and handshake */
#define UPLINK_SILENCE_NS 20000000000u /* frames sent, nothing acknowledged: reconnect */
#define UPLINK_CLOCK_NS 30000000000u
#define UPLINK_CLOCK_ROUNDS 8

struct uplink_source {
	void *arg;
	const uint8_t *worker;
	uint64_t stream;
	const struct buf *hello; /* the frame */
	/* 1: a frame to send, valid until the next call; 0: none now; -errno. */
	int (*next)(void *arg, const unsigned char **p, size_t *bytes);
	void (*rewind)(void *arg, uint64_t seq); /* the collector needs records from seq on */
	void (*acked)(void *arg, uint64_t seq);
};

enum uplink_state {
	UPLINK_OFF,
	UPLINK_CONNECTING,
	UPLINK_CHALLENGED, /* waits for the challenge */
	UPLINK_PROVING,	   /* waits for the collector's proof */
	UPLINK_GREETING,   /* waits for the welcome */
	UPLINK_READY,
};

struct uplink_clock {
	uint64_t boot_ns, real_ns; /* when it was measured, on our clocks */
	int64_t offset_ns;	   /* collector's realtime - ours */
	uint64_t error_ns;	   /* half of the round trip */
};

/* Shared by the connections of an agent. */
struct uplink_security {
	struct tls_settings settings;
	struct tls_context *context; /* made on first use */
	char why[256];		     /* why the settings are unusable; "" = they are usable */
};

struct uplink {
	const struct uplink_source *source;
	struct net_address address;
	struct uplink_security *security;
	struct stream stream;
	struct session session;
	bool had_token; /* on any connection so far */
	enum uplink_state state;
	uint64_t since_ns;	/* when the state was entered; CLOCK_MONOTONIC */
	uint64_t unanswered_ns; /* outstanding: since when */
	uint64_t retry_ns;	/* OFF: do not connect before */
	uint64_t pause_ns;
	struct buf in, out;
	bool outstanding; /* sent since the last acknowledgement */
	bool resend_hello;
	unsigned int clock_rounds; /* exchanges of this measurement so far */
	uint64_t clock_sent_ns;	   /* realtime of the current request; 0: none */
	uint64_t clock_next_ns;
	struct uplink_clock best, result;
	bool has_result; /* result is new: the caller takes it and clears this */
	/* The collector's verdicts (common/calibration.h), or why they cannot be used. */
	struct buf calibration;
	int calibration_error;
	bool has_calibration; /* as has_result; from the first WELCOME on */
	bool was_sent;	      /* the present collector has sent some */
	char trouble[256];    /* why the last connection failed; "" = it did not */
};

/* security: NULL or switched off = plain; must outlive the uplink. */
void uplink_init(struct uplink *u, const struct net_address *address,
		 const struct uplink_source *source, struct uplink_security *security);
void uplink_release(struct uplink *u);
int uplink_fd(const struct uplink *u); /* -1: nothing to poll */
short uplink_events(const struct uplink *u);
/* Does all that is possible without waiting. now: CLOCK_MONOTONIC. */
void uplink_run(struct uplink *u, uint64_t now);
/* True if a new exchange of clocks is due: the last one was answered and its pause is over. */
bool uplink_clock_due(struct uplink *u, uint64_t now);
/* The source's hello has changed: send it again. */
void uplink_new_hello(struct uplink *u);
static inline bool uplink_is_ready(const struct uplink *u)
{
	return u->state == UPLINK_READY;
}

#endif
