/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * destination_nats.c - a JetStream stream of NATS, with one message per record.
 *
 * A limited number of messages is published without waiting for acknowledgements; the library's
 * threads receive these. Each message names its predecessor, so after a failure the server rejects
 * all later ones: the stream has no gap, and its end is where to continue.
 */
#include "collector/follow/destination.h"

#include <errno.h>

#ifdef CREMA_NATS

#include <nats/nats.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth.h"
#include "common/log.h"

#define IN_FLIGHT 512
#define WAIT_MS 10000

struct nats {
	natsConnection *connection;
	jsCtx *js;
	char url[512], stream[256], subject[256];
	uint64_t last_seq;    /* of the stream when it was opened */
	pthread_mutex_t lock; /* for the following members, which the library's threads write */
	bool failed;
	char error[256]; /* the first */
};

static int fail(struct destination *d, int error, const char *what, natsStatus s)
{
	const char *more = nats_GetLastError(NULL);

	destination_fail(d, 0, "%s: %s", what, more && *more ? more : natsStatus_GetText(s));
	return -error;
}

/* nats://HOST:PORT/STREAM, or tls://... */
static int split(struct destination *d, struct nats *n)
{
	const char *slash = strchr(strstr(d->name, "://") + 3, '/');
	size_t url = slash ? (size_t)(slash - d->name) : 0;

	if (!slash || !slash[1] || strpbrk(slash + 1, "/.*> ") || url >= sizeof(n->url) ||
	    strlen(slash + 1) >= sizeof(n->stream))
		return destination_fail(d, 0,
					"expected nats://HOST:PORT/STREAM (or tls://), STREAM "
					"without dots, blanks, stars");
	if (memchr(d->name, '@', url))
		return destination_fail(
			d, 0,
			"a password on a command line is visible to other users: write "
			"USER:PASSWORD into a file that only you may read, and give it as "
			"--to-login");
	memcpy(n->url, d->name, url);
	memcpy(n->stream, slash + 1, strlen(slash + 1));
	return 0;
}

static void on_error(jsCtx *js, jsPubAckErr *error, void *arg)
{
	struct nats *n = arg;

	(void)js;
	pthread_mutex_lock(&n->lock);
	if (!n->failed) {
		n->failed = true;
		strncpy(n->error, error->ErrText ? error->ErrText : natsStatus_GetText(error->Err),
			sizeof(n->error) - 1);
	}
	pthread_mutex_unlock(&n->lock);
}

static int bad_login(struct destination *d, int error)
{
	if (error == EPERM)
		return destination_fail(d, 0,
					"other users can read '%s', or it is not yours: chmod 600",
					d->way.login);
	return destination_fail(d, 0, "cannot read '%s': %s", d->way.login, log_error(error));
}

/* Encrypted, or to this machine. */
static bool is_private(const char *name)
{
	static const char *const names[] = {
		"tls://", "nats://127.0.0.1:", "nats://localhost:", "nats://[::1]:"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

/* USER:PASSWORD, a token, or a file of credentials, which the library reads itself. */
static int log_in(struct destination *d, natsOptions *options)
{
	char text[8192], *colon;
	ssize_t n;
	natsStatus s;

	if (!d->way.login || !*d->way.login)
		return 0;
	if (!is_private(d->name))
		return destination_fail(d, 0,
					"the login would be readable on the network: use tls://");
	n = auth_secret_read(text, sizeof(text) - 1, d->way.login);
	if (n <= 0)
		return bad_login(d, n ? (int)-n : ENODATA);
	text[n] = '\0';
	colon = strchr(text, ':');
	if (strstr(text, "-----BEGIN NATS USER JWT-----")) {
		s = natsOptions_SetUserCredentialsFromFiles(options, d->way.login, NULL);
	} else if (colon) {
		*colon = '\0';
		s = natsOptions_SetUserInfo(options, text, colon + 1);
	} else {
		s = natsOptions_SetToken(options, text);
	}
	explicit_bzero(text, sizeof(text));
	return s == NATS_OK ? 0 : fail(d, EINVAL, "cannot use the login", s);
}

static int trust(struct destination *d, natsOptions *options)
{
	natsStatus s = natsOptions_SetSecure(options, true);

	if (s == NATS_OK && d->way.ca_file && *d->way.ca_file)
		s = natsOptions_LoadCATrustedCertificates(options, d->way.ca_file);
	return s == NATS_OK ? 0 : fail(d, EINVAL, "cannot use the certificates of --to-ca-file", s);
}

static natsStatus begin(struct nats *n, natsOptions *options)
{
	jsOptions js;
	natsStatus s;

	jsOptions_Init(&js);
	js.PublishAsync.MaxPending = IN_FLIGHT;
	js.PublishAsync.StallWait = WAIT_MS;
	js.PublishAsync.ErrHandler = on_error;
	js.PublishAsync.ErrHandlerClosure = n;
	s = natsOptions_SetURL(options, n->url);
	if (s == NATS_OK)
		s = natsOptions_SetName(options, "crema follow");
	if (s == NATS_OK) /* only the stream knows what arrived: start again from there */
		s = natsOptions_SetAllowReconnect(options, false);
	if (s == NATS_OK)
		s = natsConnection_Connect(&n->connection, options);
	if (s == NATS_OK)
		s = natsConnection_JetStream(&n->js, n->connection, &js);
	return s;
}

static int connect_to(struct destination *d, struct nats *n)
{
	natsOptions *options = NULL;
	natsStatus s = natsOptions_Create(&options);
	int rc = s == NATS_OK ? log_in(d, options) : -ENOMEM;

	if (!rc && !strncmp(d->name, "tls:", 4))
		rc = trust(d, options);
	s = rc ? NATS_OK : begin(n, options);
	if (s != NATS_OK)
		rc = fail(d, ECONNREFUSED, "cannot connect", s);
	natsOptions_Destroy(options);
	return rc;
}

/* Finds the stream, or creates it. */
static int find_stream(struct destination *d, struct nats *n)
{
	const char *subjects[] = {n->stream};
	jsStreamInfo *info = NULL;
	jsStreamConfig config;
	natsStatus s = js_GetStreamInfo(&info, n->js, n->stream, NULL, NULL);
	int rc = 0;

	if (s == NATS_NOT_FOUND) {
		jsStreamConfig_Init(&config);
		config.Name = n->stream;
		config.Subjects = subjects;
		config.SubjectsLen = 1;
		s = js_AddStream(&info, n->js, &config, NULL, NULL);
	}
	if (s != NATS_OK)
		return fail(d, EIO, "no such stream, and it cannot be created", s);
	if (info->Config->SubjectsLen != 1 || strpbrk(info->Config->Subjects[0], "*>") ||
	    strlen(info->Config->Subjects[0]) >= sizeof(n->subject))
		rc = destination_fail(d, 0,
				      "the stream needs exactly one subject, without wildcards");
	else
		memcpy(n->subject, info->Config->Subjects[0],
		       strlen(info->Config->Subjects[0]) + 1);
	n->last_seq = info->State.LastSeq;
	jsStreamInfo_Destroy(info);
	return rc;
}

static int take_last(struct destination *d, struct nats *n)
{
	natsMsg *last = NULL;
	natsStatus s = js_GetLastMsg(&last, n->js, n->stream, n->subject, NULL, NULL);
	int rc;

	if (s == NATS_NOT_FOUND && n->last_seq)
		return destination_fail(d, 0,
					"the stream has dropped all of its messages, and with "
					"them what it had last: give a new one");
	if (s == NATS_NOT_FOUND)
		return 0;
	if (s != NATS_OK)
		return fail(d, EIO, "cannot read the stream's last message", s);
	rc = destination_take_line(d, natsMsg_GetData(last), (size_t)natsMsg_GetDataLength(last));
	natsMsg_Destroy(last);
	return rc;
}

static int nats_open(struct destination *d)
{
	struct nats *n = d->state = calloc(1, sizeof(*n));
	int rc;

	if (!n)
		return destination_fail(d, ENOMEM, "cannot connect");
	pthread_mutex_init(&n->lock, NULL);
	rc = split(d, n);
	if (!rc)
		rc = connect_to(d, n);
	if (!rc)
		rc = find_stream(d, n);
	return rc ? rc : take_last(d, n);
}

static int failure(struct destination *d, struct nats *n)
{
	int rc = 0;

	pthread_mutex_lock(&n->lock);
	if (n->failed) {
		destination_fail(d, 0, "the server did not accept a record: %s", n->error);
		rc = -EIO;
	}
	pthread_mutex_unlock(&n->lock);
	return rc;
}

static int nats_put(struct destination *d, const char *line, size_t bytes, const struct record *r)
{
	struct nats *n = d->state;
	int64_t most = natsConnection_GetMaxPayload(n->connection);
	jsPubOptions options;
	natsMsg *message = NULL;
	natsStatus s;
	int rc = failure(d, n);

	if (rc)
		return rc;
	bytes--; /* without the newline */
	if ((int64_t)bytes > most)
		return destination_fail(d, 0,
					"a record takes %zu bytes, and the server at most %lld: "
					"raise its max_payload",
					bytes, (long long)most);
	jsPubOptions_Init(&options);
	options.MsgId = r->id;
	options.ExpectLastMsgId = *d->last_id ? d->last_id : NULL;
	options.ExpectNoMessage = !*d->last_id;
	s = natsMsg_Create(&message, n->subject, NULL, line, (int)bytes);
	if (s == NATS_OK)
		s = js_PublishMsgAsync(n->js, &message, &options);
	natsMsg_Destroy(message);
	if (s != NATS_OK)
		return fail(d, EPIPE, "cannot send a record", s);
	memcpy(d->last_id, r->id, sizeof(d->last_id));
	return 0;
}

static int nats_settle(struct destination *d)
{
	struct nats *n = d->state;
	jsPubOptions options;
	natsStatus s;
	int rc;

	jsPubOptions_Init(&options);
	options.MaxWait = WAIT_MS;
	s = js_PublishAsyncComplete(n->js, &options);
	rc = failure(d, n);
	if (!rc && s != NATS_OK)
		rc = fail(d, EPIPE, "the server did not acknowledge records", s);
	if (!rc && natsConnection_IsClosed(n->connection)) {
		destination_fail(d, 0, "the connection was closed");
		rc = -EPIPE;
	}
	return rc;
}

static void nats_end(struct destination *d)
{
	struct nats *n = d->state;

	if (!n)
		return;
	jsCtx_Destroy(n->js);
	natsConnection_Destroy(n->connection); /* ends the threads that call on_error() */
	pthread_mutex_destroy(&n->lock);
	free(n);
	d->state = NULL;
}

const struct destination_kind destination_nats = {
	.open = nats_open, .settle = nats_settle, .put = nats_put, .close = nats_end};

#else

static int no_open(struct destination *d)
{
	destination_fail(d, 0,
			 "this crema was built without NATS: install libnats-dev and build again");
	return -ENOTSUP;
}

const struct destination_kind destination_nats = {.open = no_open};

#endif
