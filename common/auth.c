/* SPDX-License-Identifier: BSD-3-Clause */
/* auth.c - the shared token and the proof of its possession. */
#include "common/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dirs.h"
#include "common/log.h"
#include "wire.h"

int auth_token_path(char *out, size_t size, const char *given)
{
	char dir[PATH_MAX];
	const char *path = given && *given ? given : getenv("CREMA_TOKEN_FILE");
	int n, rc;

	if (!path || !*path) {
		rc = dirs_config(dir, sizeof(dir));
		return rc ? rc : dirs_join(out, size, dir, "token");
	}
	n = snprintf(out, size, "%s", path);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int check_mode(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if ((st.st_mode & 077) || (st.st_uid != geteuid() && st.st_uid != 0))
		return -EPERM;
	return 0;
}

ssize_t auth_secret_read(char *text, size_t size, const char *path)
{
	ssize_t n = 0;
	int rc, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	rc = check_mode(fd);
	if (!rc) {
		n = read(fd, text, size);
		if (n < 0)
			rc = -errno;
	}
	close(fd);
	if (rc)
		return rc;
	while (n > 0 && strchr("\r\n \t", text[n - 1]))
		n--;
	return n;
}

int auth_token_read(struct auth_token *t, const char *path)
{
	char text[AUTH_TOKEN_MAX + 2];
	ssize_t n = auth_secret_read(text, sizeof(text), path);

	t->len = 0;
	if (n < 0)
		return (int)n;
	if (n < AUTH_TOKEN_MIN || n > AUTH_TOKEN_MAX)
		return -EINVAL;
	memcpy(t->text, text, (size_t)n);
	t->text[n] = '\0';
	t->len = (size_t)n;
	return 0;
}

int auth_random(void *p, size_t n)
{
	unsigned char *at = p;

	while (n) {
		ssize_t got = getrandom(at, n, 0);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0) {
			at += got;
			n -= (size_t)got;
		}
	}
	return 0;
}

/* Writes a new token to a new file, then links it to the name, so no one sees half a token.
 * `instead`: replaces an existing token. */
static int write_token(const char *path, bool instead)
{
	unsigned char raw[32];
	char line[2 * sizeof(raw) + 2], temp[PATH_MAX];
	int fd, n, rc = auth_random(raw, sizeof(raw));

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(line + 2 * i, 3, "%02x", raw[i]);
	line[2 * sizeof(raw)] = '\n';
	n = snprintf(temp, sizeof(temp), "%s.%ld", path, (long)getpid());
	if (n < 0 || (size_t)n >= sizeof(temp))
		return -ENAMETOOLONG;
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, line, sizeof(line) - 1) != (ssize_t)sizeof(line) - 1 || fsync(fd) < 0)
		rc = -EIO;
	close(fd);
	if (!rc && instead && !rename(temp, path))
		return 0;
	if (!rc && (instead || link(temp, path) < 0))
		rc = -errno;
	/* No hard links there: a plain rename, which would replace a token from another process. */
	if ((rc == -EPERM || rc == -EOPNOTSUPP || rc == -ENOSYS) && access(path, F_OK) < 0)
		return rename(temp, path) < 0 ? -errno : 0;
	unlink(temp);
	return rc;
}

int auth_token_make(struct auth_token *t, const char *path)
{
	char dir[PATH_MAX];
	char *slash;
	int rc = auth_token_read(t, path);

	if (rc != -ENOENT)
		return rc;
	if (snprintf(dir, sizeof(dir), "%s", path) >= (int)sizeof(dir))
		return -ENAMETOOLONG;
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		rc = dirs_make(dir);
		if (rc)
			return rc;
	}
	rc = write_token(path, false);
	if (rc && rc != -EEXIST)
		return rc;
	return auth_token_read(t, path);
}

int auth_token_renew(struct auth_token *t, const char *path)
{
	int rc = auth_token_make(t, path); /* the folder, and refuses another user's file */

	if (rc && rc != -EINVAL)
		return rc;
	rc = write_token(path, true);
	return rc ? rc : auth_token_read(t, path);
}

const char *auth_explain(char *out, size_t size, int error, const char *path)
{
	if (error == -ENOENT)
		snprintf(out, size,
			 "no token file '%s'; 'crema collect' makes it, or set "
			 "CREMA_TOKEN_FILE",
			 path);
	else if (error == -EPERM)
		snprintf(out, size,
			 "token file '%s' can be read by others or is not yours; "
			 "run: chmod 600 '%s'",
			 path, path);
	else if (error == -EINVAL)
		snprintf(out, size,
			 "token file '%s' holds no token of %d to %d characters; "
			 "remove it and 'crema collect' makes a new one",
			 path, AUTH_TOKEN_MIN, AUTH_TOKEN_MAX);
	else
		snprintf(out, size, "cannot use token file '%s': %s", path, log_error(error));
	return out;
}

int auth_derive(const struct auth_token *t, const char *label, const void *p, size_t n,
		uint8_t *out)
{
	uint8_t message[256];
	size_t head = strlen(label) + 1;
	unsigned int got;

	if (head + n > sizeof(message))
		return -EINVAL;
	memcpy(message, label, head);
	memcpy(message + head, p, n);
	return HMAC(EVP_sha256(), t->text, (int)t->len, message, head + n, out, &got) ? 0 : -ENOMEM;
}

_Static_assert(sizeof(struct auth_start) == 3 + 2 * AUTH_NONCE_BYTES + CREMA_WORKER_ID_BYTES,
	       "hashed as it lies in memory");

int auth_keys(const struct auth_token *t, const struct auth_start *start, struct auth_keys *keys)
{
	int rc = auth_derive(t, "crema proof of the collector", start, sizeof(*start), keys->proof);

	if (!rc)
		rc = auth_derive(t, "crema key to the collector", start, sizeof(*start),
				 keys->to_collector);
	return rc ? rc
		  : auth_derive(t, "crema key to the agent", start, sizeof(*start), keys->to_agent);
}

void auth_forget(void *p, size_t n)
{
	OPENSSL_cleanse(p, n);
}

int auth_mac(const struct auth_token *t, const uint8_t *collector_nonce, const uint8_t *agent_nonce,
	     const uint8_t *worker, uint8_t *mac)
{
	uint8_t message[2 * AUTH_NONCE_BYTES + CREMA_WORKER_ID_BYTES];
	unsigned int n = AUTH_MAC_BYTES;

	memcpy(message, collector_nonce, AUTH_NONCE_BYTES);
	memcpy(message + AUTH_NONCE_BYTES, agent_nonce, AUTH_NONCE_BYTES);
	memcpy(message + 2 * AUTH_NONCE_BYTES, worker, CREMA_WORKER_ID_BYTES);
	if (!HMAC(EVP_sha256(), t->text, (int)t->len, message, sizeof(message), mac, &n))
		return -ENOMEM;
	return 0;
}

int auth_digest(const void *key, size_t key_bytes, const void *p, size_t n, uint8_t *out)
{
	unsigned int got;

	return HMAC(EVP_sha256(), key, (int)key_bytes, p, n, out, &got) ? 0 : -ENOMEM;
}

bool auth_equal(const void *a, const void *b, size_t n)
{
	return CRYPTO_memcmp(a, b, n) == 0;
}
