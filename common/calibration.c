/* SPDX-License-Identifier: BSD-3-Clause */
/* calibration.c - the text of verdicts, its file, and the kinds that follow from them
 * (calibration.h). */
#include "common/calibration.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/dirs.h"
#include "common/inflate.h"
#include "common/log.h"
#include "common/pack.h"
#include "wire.h"

#define HEAD "crema calibration 1\n"
#define MOST_BYTES (1u << 20)

int calibration_path(char *out, size_t size, const char *given)
{
	const char *file = getenv("CREMA_CALIBRATION");
	char state[PATH_MAX];
	int rc;

	if (file && *file) {
		rc = snprintf(out, size, "%s", file);
		return rc < 0 || (size_t)rc >= size ? -ENAMETOOLONG : 0;
	}
	rc = dirs_state(state, sizeof(state), given);
	return rc ? rc : dirs_join(out, size, state, "calibration");
}

bool calibration_of(const struct mount *m, struct verdict *v)
{
	struct utsname u;

	*v = (struct verdict){0};
	if (uname(&u) || strlen(u.release) >= sizeof(v->kernel) || strchr(u.release, ' ') ||
	    m->type.len >= sizeof(v->type) || !mounts_options(m, v->options))
		return false;
	text_copy(v->type, sizeof(v->type), m->type);
	snprintf(v->kernel, sizeof(v->kernel), "%s", u.release);
	return true;
}

/* One line without its end. */
static bool parse(struct text line, struct verdict *v)
{
	char text[MOUNT_OPTIONS + 320], word[8];
	int used = 0;

	if (line.len >= sizeof(text) || memchr(line.ptr, '\0', line.len))
		return false;
	text_copy(text, sizeof(text), line);
	/* The sizes of struct verdict. */
	if (sscanf(text, "%7s %63s %64s %1023s %" SCNu64 " %" SCNu64 " %" SCNu64 " %31[a-z ]%n",
		   word, v->type, v->kernel, v->options, &v->time_s, &v->charged_bytes,
		   &v->needed_bytes, v->way, &used) != 8 ||
	    (size_t)used != line.len)
		return false;
	v->right = !strcmp(word, "right");
	return v->right || !strcmp(word, "wrong");
}

static bool take_line(struct text *rest, struct text *line)
{
	const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;

	if (!end)
		return false;
	*line = (struct text){rest->ptr, (size_t)(end - rest->ptr)};
	rest->len -= line->len + 1;
	rest->ptr = end + 1;
	return true;
}

static bool is_end(struct text line)
{
	return line.len > 4 && !memcmp(line.ptr, "end ", 4);
}

int calibration_check(const char *p, size_t n)
{
	struct text rest = {p, n}, line;
	struct verdict v;
	char want[64];
	size_t lines = 0;

	if (!take_line(&rest, &line) || line.len < 18 || memcmp(line.ptr, HEAD, 18))
		return -EBADMSG;
	if (line.len != strlen(HEAD) - 1 || memcmp(line.ptr, HEAD, line.len))
		return -EPROTO;
	while (take_line(&rest, &line) && !is_end(line)) {
		if (!parse(line, &v))
			return -EBADMSG;
		lines++;
	}
	snprintf(want, sizeof(want), "end %zu %08" PRIx32, lines,
		 inflate_crc(0, p, (size_t)(line.ptr - p)));
	return !rest.len && text_is(line, want) ? 0 : -EBADMSG;
}

bool calibration_next(struct text *rest, struct verdict *v)
{
	struct text line;

	while (take_line(rest, &line) && !is_end(line))
		if (parse(line, v))
			return true;
	return false;
}

static bool is_same(const struct verdict *a, const struct verdict *b)
{
	return !strcmp(a->type, b->type) && !strcmp(a->kernel, b->kernel) &&
	       !strcmp(a->options, b->options);
}

static struct text text_of(const struct buf *b)
{
	return (struct text){(const char *)b->data, b->len};
}

bool calibration_find(const struct buf *text, struct verdict *v)
{
	struct text rest = text_of(text);
	struct verdict one;

	while (calibration_next(&rest, &one)) {
		if (is_same(&one, v)) {
			*v = one;
			return true;
		}
	}
	return false;
}

static void put_line(struct buf *out, const struct verdict *v)
{
	char line[MOUNT_OPTIONS + 320];
	int n = snprintf(line, sizeof(line), "%s %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n",
			 v->right ? "right" : "wrong", v->type, v->kernel, v->options, v->time_s,
			 v->charged_bytes, v->needed_bytes, v->way);

	buf_add(out, line, (size_t)n);
}

int calibration_put(struct buf *text, const struct verdict *v)
{
	struct text rest = text_of(text);
	struct buf out = BUF_INIT;
	struct verdict one;
	char end[64];

	buf_add(&out, HEAD, strlen(HEAD));
	while (calibration_next(&rest, &one))
		if (!is_same(&one, v))
			put_line(&out, &one);
	put_line(&out, v);
	snprintf(end, sizeof(end), "end %zu %08" PRIx32 "\n", buf_lines(&out) - 1,
		 inflate_crc(0, out.data, out.len));
	buf_add(&out, end, strlen(end));
	if (!out.error) {
		buf_release(text);
		*text = out;
		return 0;
	}
	buf_release(&out);
	return -ENOMEM;
}

int calibration_read(struct buf *out, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;

	buf_clear(out);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = -EBADMSG;
	else
		rc = dirs_is_own(&st) ? 0 : -EPERM;
	rc = rc ? rc : buf_read(out, fd, MOST_BYTES + 1);
	close(fd);
	rc = rc ? rc : calibration_check((const char *)out->data, out->len);
	if (rc)
		buf_clear(out);
	return rc;
}

int calibration_unpack(struct buf *out, const msgpack_object *map)
{
	const msgpack_object *value = get(map, "text");
	struct text text = get_text(map, "text");
	int rc;

	buf_clear(out);
	if (value && value->type == MSGPACK_OBJECT_NIL)
		return 0;
	if (!text.ptr)
		return -EBADMSG;
	if (text.len > CREMA_CALIBRATION_BYTES)
		return -EFBIG;
	rc = calibration_check(text.ptr, text.len);
	if (!rc)
		rc = buf_add(out, text.ptr, text.len);
	if (rc)
		buf_clear(out);
	return rc;
}

const char *calibration_why(int error)
{
	return error == -EPERM	   ? "another user owns it or can write to it"
	       : error == -EPROTO  ? "it is of another version of crema"
	       : error == -EBADMSG ? "it is damaged"
				   : log_error(error);
}

const char *calibration_explain(char *out, size_t size, int error, const char *path)
{
	snprintf(out, size,
		 "'%s' is ignored: %s; remove it, and run: crema doctor --calibrate PATH", path,
		 calibration_why(error));
	return out;
}

const char *calibration_figures(char *out, const struct verdict *v)
{
	const double mib = 1048576.0;

	snprintf(out, CALIBRATION_FIGURES, "charged %.4g of %.4g MiB (%s)",
		 (double)v->charged_bytes / mib, (double)v->needed_bytes / mib, v->way);
	return out;
}

enum fskind calibration_kind(enum fskind kind, int64_t f_type, const struct verdict *v)
{
	if (!v || kind == FSKIND_NONE)
		return kind;
	if (!v->right)
		return FSKIND_UNKNOWN;
	if (kind != FSKIND_UNKNOWN || f_type == FUSE_SUPER_MAGIC || f_type == OVERLAYFS_SUPER_MAGIC)
		return kind;
	return FSKIND_CALIBRATED;
}
