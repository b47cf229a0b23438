/* SPDX-License-Identifier: BSD-3-Clause */
/* destination_socket.c - sends lines to a listener, and tracks what its kernel acknowledged. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "collector/export/atomic_file.h"
#include "collector/follow/destination.h"
#include "common/dirs.h"
#include "common/net.h"
#include "common/procfs.h"
#include "common/table.h"

#define CONNECT_MS 10000
#define DRAIN_MS 20
#define DRAIN_TRIES 50

/* The path of its note in the data directory. */
static int note_path(const struct destination *d, char path[PATH_MAX])
{
	char folder[PATH_MAX], name[32];

	snprintf(name, sizeof(name), "%016llx",
		 (unsigned long long)hash_bytes(1, d->name, strlen(d->name)));
	if (dirs_join(folder, sizeof(folder), d->data_dir, "follow") ||
	    dirs_join(path, PATH_MAX, folder, name))
		return -ENAMETOOLONG;
	return dirs_make_own(folder);
}

static int read_note(struct destination *d)
{
	char path[PATH_MAX], text[PLACE_BYTES + 1];
	int rc = note_path(d, path);
	ssize_t n;

	if (rc)
		return destination_fail(d, rc, "cannot use 'follow' in the data directory");
	n = procfs_slurp(text, sizeof(text), "%s", path);
	if (n == -ENOENT)
		return 0;
	if (n > 0 && text[n - 1] == '\n')
		text[n - 1] = '\0';
	if (n <= 0 || !place_read(&d->last, text))
		return destination_fail(d, n < 0 ? (int)n : 0, "cannot read '%s'", path);
	return 0;
}

static int write_note(struct destination *d)
{
	char path[PATH_MAX], text[PLACE_BYTES];
	struct atomic_file file;
	struct buf why = BUF_INIT;
	int rc = note_path(d, path);

	if (!place_order(&d->put, &d->last))
		return 0;
	if (!rc)
		rc = atomic_file_init(&file, path);
	if (!rc) {
		sink_printf(&file.sink, "%s\n", place_text(text, &d->put));
		rc = atomic_file_end(&file, &why);
	}
	buf_release(&why);
	if (rc)
		return destination_fail(d, rc, "cannot write '%s'", path);
	d->last = d->put;
	return 0;
}

static int connect_unix(struct destination *d, const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(name.sun_path))
		return destination_fail(d, ENAMETOOLONG, "cannot connect");
	memcpy(name.sun_path, path, strlen(path));
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (d->fd < 0 || connect(d->fd, (const struct sockaddr *)&name, sizeof(name)))
		return destination_fail(d, errno, "cannot connect");
	return 0;
}

static int connect_tcp(struct destination *d, const char *text)
{
	struct net_address address;
	struct pollfd wait = {.events = POLLOUT};
	int rc;

	if (net_parse(&address, text, 0) || address.kind != NET_TCP)
		return destination_fail(d, 0, "expected tcp:HOST:PORT");
	d->fd = wait.fd = net_connect(&address);
	if (d->fd < 0)
		return destination_fail(d, d->fd, "cannot connect");
	rc = poll(&wait, 1, CONNECT_MS) > 0 ? net_connected(d->fd) : -ETIMEDOUT;
	return rc ? destination_fail(d, rc, "cannot connect") : 0;
}

static int socket_open(struct destination *d)
{
	int rc = read_note(d);

	if (rc)
		return rc;
	return !strncmp(d->name, "unix:", 5) ? connect_unix(d, d->name + 5)
					     : connect_tcp(d, d->name + 4);
}

/* Whether its kernel has acknowledged everything, after a while. */
static int drained(struct destination *d)
{
	struct pollfd gone = {.fd = d->fd, .events = POLLRDHUP};
	int left = 1, tries = DRAIN_TRIES;

	while (!ioctl(d->fd, SIOCOUTQ, &left) && left && tries--)
		poll(&gone, 1, DRAIN_MS);
	if (poll(&gone, 1, 0) > 0 && gone.revents & (POLLERR | POLLHUP | POLLRDHUP))
		return destination_fail(d, EPIPE, "the receiver has closed the connection");
	return left;
}

static int socket_settle(struct destination *d)
{
	int rc = destination_write(d);

	if (!rc)
		rc = drained(d);
	return rc < 0 ? rc : rc ? 0 : write_note(d);
}

const struct destination_kind destination_socket = {
	.open = socket_open, .settle = socket_settle, .hold_bytes = 64u << 10};
