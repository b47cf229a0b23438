/* SPDX-License-Identifier: BSD-3-Clause */
/* certificates.c - reads the collector's certificate and key. */
#include "collector/loop/certificates.h"

#include <errno.h>
#include <stdio.h>

#include "common/log.h"

static int read_pem(struct buf *out, const char *path, char *why, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t n = 1;
	int err = file ? 0 : -errno;

	while (file && n && !err) {
		err = buf_reserve(out, 4096);
		n = err ? 0 : fread(out->data + out->len, 1, 4096, file);
		out->len += n;
	}
	if (file)
		fclose(file);
	if (!err)
		err = buf_add(out, "", 1);
	if (err)
		snprintf(why, size, "cannot read '%s': %s", path, log_error(err));
	return err;
}

int certificates_open(struct certificates *c, const struct tls_files *given, char *why, size_t size)
{
	const struct tls_files *f = &c->settings.files;
	int err = tls_settings_find(&c->settings, given, "scheduler", why, size);

	if (err || !c->settings.on)
		return err;
	c->context = tls_context_new(f, true, why, size);
	if (!c->context)
		return -EINVAL;
	err = read_pem(&c->cert, f->cert, why, size);
	return err ? err : read_pem(&c->key, f->key ? f->key : f->cert, why, size);
}

void certificates_close(struct certificates *c)
{
	tls_context_free(c->context);
	c->context = NULL;
	buf_release(&c->cert);
	buf_release(&c->key);
}
