/* SPDX-License-Identifier: BSD-3-Clause */
/* exchange.c - what sends and receives on a connection mean. */
#include "shim/count/exchange.h"

#include <string.h>
#include <sys/socket.h>

#include "shim/count/fd.h"
#include "shim/count/peer.h"
#include "shim/count/server.h"
#include "shim/count/thread.h"
#include "shim/count/url.h"
#include "shim/count/xrootd.h"
#include "shim/libc/sys.h"

/* TLS records: type, version (3, x), length */
#define RECORD_HEADER 5
#define RECORD_CHANGE_CIPHER 0x14
#define RECORD_HANDSHAKE 0x16
#define RECORD_DATA 0x17
/* An alert has 2 bytes in TLS 1.3, a change of keys 5; 17 come with each record. */
#define RECORD_SMALL (RECORD_HEADER + 5 + 17)
/* The client's last message of an opening: SHA-256 or SHA-384, 4 and 17 bytes more. */
#define RECORD_FINISHED(hash_bytes) (RECORD_HEADER + 4 + (hash_bytes) + 17)

/* Answers of an XRootD server to files that are closed late, and tickets, are smaller. */
#define XROOTD_TLS_REST_BYTES 4096

/* The last three are not counted. */
enum protocol { UNKNOWN, HTTP, TLS, OTHER, LEFT_OUT, XROOTD, XROOTD_TLS };

/* Private memory, one row per descriptor. */
static struct exchange {
	uint64_t start; /* ticks of the request under way; 0: none */
	uint64_t last;	/* of the last bytes received */
	uint64_t bytes; /* received; of XROOTD_TLS: since a request was announced */
	uint64_t task;
	uint32_t scheme, address, url; /* string ids; url 0: unknown */
	uint32_t protocol;
	uint32_t finished_due; /* the server requested another hello */
} table[FD_TABLE];

/* No descriptor from here up has a row in use. */
static int used;

static struct exchange *row_of(int fd)
{
	return (unsigned int)fd < FD_TABLE ? &table[fd] : NULL;
}

struct sent sent_vector(const struct iovec *v, size_t n)
{
	size_t i = 0;

	while (i < n && !v[i].iov_len)
		i++;
	return i < n ? sent_buffer(v[i].iov_base, v[i].iov_len) : sent_buffer(NULL, 0);
}

struct sent sent_message(const struct msghdr *m)
{
	return sent_vector(m->msg_iov, m->msg_iovlen);
}

static int is_http(struct sent s)
{
	static const char *const methods[] = {
		"GET ",	  "HEAD ",    "PUT ",	"POST ",  "DELETE ", "OPTIONS ", "PROPFIND ",
		"PATCH ", "CONNECT ", "TRACE ", "MKCOL ", "MOVE ",   "COPY "};

	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		if (sent_starts(s, methods[i]))
			return 1;
	return 0;
}

static int is_record(struct sent s)
{
	return s.bytes > RECORD_HEADER && s.at[0] >= RECORD_CHANGE_CIPHER &&
	       s.at[0] <= RECORD_DATA && s.at[1] == 3 && s.at[2] <= 4;
}

static void set_protocol(struct exchange *e, enum protocol protocol)
{
	static const char *const schemes[] = {[HTTP] = "http", [TLS] = "https", [OTHER] = "tcp"};

	STORE(&e->protocol, protocol);
	STORE(&e->scheme, protocol == LEFT_OUT ? 0
					       : arena_id(schemes[protocol],
							  (uint32_t)strlen(schemes[protocol])));
}

/* The protocol of this connection, by the first bytes that a task sends. */
static enum protocol first_words(struct sent s)
{
	if (!s.at || sent_starts(s, "HTTP/"))
		return LEFT_OUT;
	return is_record(s) ? TLS : is_http(s) ? HTTP : OTHER;
}

static size_t record_bytes(const uint8_t *header)
{
	return RECORD_HEADER + ((size_t)header[3] << 8 | header[4]);
}

static int is_finished(uint64_t bytes)
{
	return bytes == RECORD_FINISHED(32) || bytes == RECORD_FINISHED(48);
}

/* A change of cipher ends the opening: the client's last message follows. uvloop sends the first
 * request in the same call. */
static int ask_after_opening(struct exchange *e, struct sent s, uint64_t bytes)
{
	size_t at = record_bytes(s.at), n;

	while (at + RECORD_HEADER <= s.bytes) {
		n = record_bytes(s.at + at);
		if (s.at[at] == RECORD_HANDSHAKE) {
			/* TLS 1.2's last message, or a second hello, which is long */
			STORE(&e->finished_due, n > 128);
			return n <= 128 && bytes > at + n + RECORD_SMALL;
		}
		at += n;
		if (s.at[at - n] == RECORD_DATA && is_finished(n))
			return bytes > at + RECORD_SMALL;
	}
	return 0;
}

/* 1 if these records begin a request. */
static int records_ask(struct exchange *e, struct sent s, uint64_t bytes)
{
	uint32_t due = LOAD(&e->finished_due);

	if (!is_record(s))
		return 0; /* the rest of one */
	if (s.at[0] == RECORD_CHANGE_CIPHER)
		return ask_after_opening(e, s, bytes);
	if (s.at[0] != RECORD_DATA)
		return 0;
	if (due)
		STORE(&e->finished_due, 0);
	if (due && is_finished(record_bytes(s.at)))
		bytes -= record_bytes(s.at) < bytes ? record_bytes(s.at) : bytes;
	return bytes > RECORD_SMALL;
}

static int asks(struct exchange *e, struct sent s, uint64_t bytes)
{
	enum protocol protocol = LOAD(&e->protocol);

	if (protocol >= LEFT_OUT || !s.at)
		return 0;
	/* TLS after plain text, as behind a proxy */
	if (protocol != TLS && is_record(s) && s.at[0] == RECORD_HANDSHAKE)
		set_protocol(e, protocol = TLS);
	return protocol == TLS ? records_ask(e, s, bytes) : protocol == OTHER || is_http(s);
}

/* Counts the current request once, whichever thread finds that it ended. */
static void count(struct exchange *e)
{
	struct server_request r = {.task = LOAD(&e->task),
				   .scheme = LOAD(&e->scheme),
				   .address = LOAD(&e->address),
				   .url = LOAD(&e->url)};
	uint64_t start = __atomic_exchange_n(&e->start, 0, __ATOMIC_ACQ_REL), end;

	if (!start)
		return;
	r.read_bytes = LOAD(&e->bytes);
	r.failed = !r.read_bytes;
	end = r.failed ? ticks() : LOAD(&e->last);
	r.latency_ns = end > start ? ticks_ns(end - start) : 0;
	server_count(&r);
}

static void begin(struct exchange *e, uint64_t task, struct sent s, uint64_t start)
{
	STORE(&e->url, LOAD(&e->protocol) == HTTP ? url_of_request(s) : 0);
	STORE(&e->task, task);
	STORE(&e->bytes, 0);
	__atomic_store_n(&e->start, start, __ATOMIC_RELEASE);
}

static void use(int fd)
{
	int have = LOAD(&used);

	while (have <= fd && !__atomic_compare_exchange_n(&used, &have, fd + 1, 0, __ATOMIC_RELAXED,
							  __ATOMIC_RELAXED))
		;
}

/* The first send for a task on this connection. */
static void look(struct exchange *e, int fd, struct sent s)
{
	use(fd);
	STORE(&e->address, peer_id(fd));
	set_protocol(e, LOAD(&e->address) ? first_words(s) : LEFT_OUT);
}

static void leave_out(struct exchange *e, int fd, enum protocol protocol)
{
	use(fd);
	STORE(&e->start, 0);
	STORE(&e->bytes, 0);
	STORE(&e->protocol, protocol);
}

int exchange_is_clients(int fd, struct sent sent)
{
	struct exchange *e = row_of(fd);

	if (!e)
		return 1;
	if (LOAD(&e->protocol) == UNKNOWN && xrootd_begins(sent))
		leave_out(e, fd, XROOTD);
	else if (LOAD(&e->protocol) == UNKNOWN)
		look(e, fd, sent);
	else if (LOAD(&e->protocol) == XROOTD && is_record(sent) && sent.at[0] == RECORD_HANDSHAKE)
		leave_out(e, fd, XROOTD_TLS);
	if (LOAD(&e->protocol) == XROOTD)
		return xrootd_is_anyones(sent);
	return LOAD(&e->protocol) < LEFT_OUT;
}

void exchange_sent(int fd, uint64_t task, struct sent sent, uint64_t bytes, uint64_t start)
{
	struct exchange *e = row_of(fd);

	if (!e || (!task && !LOAD(&e->start)))
		return;
	if (LOAD(&e->protocol) == UNKNOWN)
		look(e, fd, sent);
	if ((LOAD(&e->start) && !LOAD(&e->bytes)) || !asks(e, sent, bytes))
		return;
	count(e);
	if (task)
		begin(e, task, sent, start);
}

/* 1 if another user of XRootD's client receives data: nothing is announced. */
static int is_anyones(struct exchange *e, uint64_t bytes)
{
	if (LOAD(&e->protocol) != XROOTD_TLS)
		return 0;
	if (!xrootd_is_idle()) {
		STORE(&e->bytes, 0);
		return 0;
	}
	return ADD(&e->bytes, bytes) + bytes > XROOTD_TLS_REST_BYTES;
}

int exchange_received(int fd, uint64_t bytes)
{
	struct exchange *e = row_of(fd);

	if (!e || !bytes)
		return 0;
	if (!LOAD(&e->start))
		return is_anyones(e, bytes);
	STORE(&e->last, ticks());
	ADD(&e->bytes, bytes);
	return 0;
}

void exchange_leave_out(int fd)
{
	struct exchange *e = row_of(fd);

	if (e)
		leave_out(e, fd, LEFT_OUT);
}

static void forget(struct exchange *e)
{
	STORE(&e->start, 0);
	STORE(&e->finished_due, 0);
	STORE(&e->protocol, UNKNOWN);
}

void exchange_forget(int fd)
{
	struct exchange *e = row_of(fd);

	if (!e || fd >= LOAD(&used) || LOAD(&e->protocol) == UNKNOWN)
		return;
	count(e);
	forget(e);
}

void exchange_task_ends(uint64_t task)
{
	for (int fd = 0, n = LOAD(&used); fd < n; fd++)
		if (LOAD(&table[fd].start) && LOAD(&table[fd].task) == task &&
		    LOAD(&table[fd].bytes))
			count(&table[fd]);
}

void exchange_forget_all(void)
{
	for (int fd = 0, n = LOAD(&used); fd < n; fd++)
		forget(&table[fd]);
	STORE(&used, 0);
}
