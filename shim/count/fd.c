/* SPDX-License-Identifier: BSD-3-Clause */
/* fd.c - descriptor words, file rows, file systems. */
#define _GNU_SOURCE
#include "shim/count/fd.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "shim/count/digits.h"
#include "shim/count/file_row.h"
#include "shim/count/opener.h"
#include "shim/count/packed.h"
#include "shim/libc/sys.h"
#include "shim/count/thread.h"
#include "shim/count/url.h"

/* kind 3 bits, unsure 1, file system 5, packed 1, opened 11, row 11; of kind FD_UNKNOWN 3 bits, and
 * the number of the line that has opened it */
static uint32_t words[FD_TABLE];
_Static_assert(CREMA_SHM_FILES < 1u << 11 && CREMA_SHM_OPENED < 1u << 11 &&
		       CREMA_SHM_FILESYSTEMS <= 1u << 5,
	       "a word has room for them");

static uint32_t word_of(const struct fd_info *i)
{
	return i->kind | i->unsure << 3 | i->filesystem << 4 | i->packed << 9 | i->opened << 10 |
	       i->row << 21;
}

static struct fd_info info_of(uint32_t w)
{
	struct fd_info i = {.kind = w & 7};

	if (i.kind == FD_UNKNOWN)
		return i;
	i.unsure = w >> 3 & 1;
	i.filesystem = w >> 4 & 31;
	i.packed = w >> 9 & 1;
	i.opened = w >> 10 & 2047;
	i.row = w >> 21;
	return i;
}

void fd_opened_at(int fd, uint32_t line)
{
	if (line && (unsigned int)fd < FD_TABLE)
		STORE(&words[fd], line << 3);
}

void fd_forget(int fd)
{
	STORE(&words[fd], 0);
}

void fd_forget_files(void)
{
	for (int fd = 0; fd < FD_TABLE; fd++)
		if (info_of(LOAD(&words[fd])).row)
			fd_forget(fd);
}

int fd_is_known(int fd)
{
	return info_of(LOAD(&words[fd])).kind != FD_UNKNOWN;
}

static int ends_with(const char *s, size_t n, const char *end)
{
	size_t e = strlen(end);

	return n >= e && !memcmp(s + n - e, end, e);
}

/* Files that configure TLS and clients: an authority's bundle is read again for each context. */
static int is_config(const char *path, size_t n)
{
	return !strncmp(path, "/etc/", 5) || strstr(path, "ca-certificates") ||
	       strstr(path, "/grid-security/") || ends_with(path, n, "cacert.pem") ||
	       ends_with(path, n, "/ssl/cert.pem") || ends_with(path, n, "openssl.cnf");
}

int fd_is_import(const char *path, size_t n)
{
	return ends_with(path, n, ".py") || ends_with(path, n, ".pyc") ||
	       ends_with(path, n, ".so") || strstr(path, ".so.") || strstr(path, "-packages/") ||
	       strstr(path, ".dist-info/") || strstr(path, "/lib/python") || is_config(path, n);
}

/* How reliable the storage charges of a file system are (filesystems.def). */
enum charges { EXACT, NONE, UNRESOLVED, UNKNOWN, PSEUDO };

static enum charges charges_of(int64_t f_type)
{
	switch ((uint32_t)f_type) {
#define FILESYSTEM(type, kind, ...)                                                                \
	case type:                                                                                 \
		return kind;
#include "filesystems.def"
#undef FILESYSTEM
	}
	return UNKNOWN;
}

static uint32_t filesystem_index(uint64_t dev, int64_t f_type, uint32_t path)
{
	for (uint32_t i = 0; i < CREMA_SHM_FILESYSTEMS; i++) {
		struct crema_filesystem *f = &crema_shm->filesystem[i];
		uint32_t state = __atomic_load_n(&f->state, __ATOMIC_ACQUIRE), none = 0;

		if (state == 0 && __atomic_compare_exchange_n(&f->state, &none, 1, 0,
							      __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
			f->dev = dev;
			f->f_type = f_type;
			f->path = path;
			__atomic_store_n(&f->state, 2, __ATOMIC_RELEASE);
			return i;
		}
		/* An entry that another thread is creating is skipped: a second entry does no
		 * harm. */
		if (state == 2 && f->dev == dev && f->f_type == f_type) {
			if (path && !LOAD(&f->path))
				STORE(&f->path, path);
			return i;
		}
	}
	return CREMA_SHM_FILESYSTEMS - 1;
}

static uint32_t file_row(uint32_t path, uint32_t span, const struct fd_info *info,
			 const struct file_look *look)
{
	return file_row_make(path, span,
			     info->kind == FD_IMPORT ? CREMA_FILE_IMPORT : CREMA_FILE_DATA,
			     info->filesystem, look);
}

static long link_target(int fd, char *path, size_t size)
{
	char link[40] = "/proc/self/fd/";
	long got;

	*put_number(link + 14, (uint64_t)fd, 10) = 0;
	got = SYS4(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
	path[got > 0 ? got : 0] = 0;
	return got;
}

/* Sockets within this machine (AF_UNIX) are treated like pipes. */
static int is_internet(int fd)
{
	int domain = 0;
	socklen_t size = sizeof(domain);

	if (sys6(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, (long)&domain, (long)&size, 0) < 0)
		return 0;
	return domain == AF_INET || domain == AF_INET6;
}

static struct file_look look_of(const struct stat *st)
{
	return (struct file_look){
		.dev = (uint64_t)st->st_dev,
		.ino = (uint64_t)st->st_ino,
		.mtime_ns =
			(uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec,
		.size_bytes = (uint64_t)st->st_size,
	};
}

/* Its row was made before the file existed. */
static void update_row(struct crema_file *f, const struct fd_info *info)
{
	if (unlikely(LOAD(&f->filesystem) >= CREMA_SHM_FILESYSTEMS))
		STORE(&f->filesystem, info->filesystem);
}

static struct fd_info look(int fd, uint32_t span)
{
	struct fd_info info = {.kind = FD_OTHER};
	char path[1024];
	struct file_look found;
	struct stat st;
	struct statfs fs;
	uint32_t id;
	long n;

	if (SYS2(SYS_fstat, fd, &st) < 0 || !shim_same_process()) {
		info.kind = FD_UNKNOWN;
		return info;
	}
	if (S_ISSOCK(st.st_mode) && is_internet(fd))
		info.kind = FD_SOCKET;
	if (!S_ISREG(st.st_mode))
		return info;
	memset(&fs, 0, sizeof(fs));
	if (SYS2(SYS_fstatfs, fd, &fs) < 0)
		fs.f_type = 0;
	if (charges_of(fs.f_type) == PSEUDO)
		return info;
	n = link_target(fd, path, sizeof(path));
	info.unsure = charges_of(fs.f_type) == UNKNOWN;
	info.packed = (uint32_t)packed_is(st.st_dev, st.st_ino);
	info.kind = n > 0 && fd_is_import(path, (size_t)n) ? FD_IMPORT : FD_DATA;
	id = info.kind == FD_DATA && n > 0 ? arena_bulk_id(path, (uint32_t)n) : 0;
	info.filesystem = filesystem_index(st.st_dev, fs.f_type, id);
	found = look_of(&st);
	info.row = file_row(id, span, &info, info.kind == FD_DATA ? &found : NULL);
	if (info.kind == FD_DATA)
		update_row(&crema_shm->file[info.row - 1], &info);
	return info;
}

/* What the line's descriptors of the file move is counted there, too. */
static void set_opened(struct fd_info *info, const struct crema_line *line)
{
	info->opened = opener_row(info->row, line);
	if (info->opened)
		ADD(&crema_shm->opened[info->opened - 1].descriptors, 1);
}

struct fd_info fd_lookup(int fd)
{
	uint32_t w = (unsigned int)fd < FD_TABLE ? LOAD(&words[fd]) : 0;
	struct fd_info info = info_of(w);
	int same = info.kind != FD_UNKNOWN;

	if (!same) {
		info = look(fd, segment_span());
		if (unlikely(w) && info.kind == FD_DATA && info.row)
			set_opened(&info, opener_line(w >> 3));
	}
	if (info.row) {
		const struct crema_file *f = &crema_shm->file[info.row - 1];
		uint32_t span = segment_span();

		if (unlikely(f->span != span) && f->kind == CREMA_FILE_OTHER) {
			if (info.row != CREMA_SHM_FILES) {
				info.row = file_rest_row(span);
				same = 0;
			}
		} else if (unlikely(f->span != span)) {
			struct file_look found;
			struct stat st;
			int seen = SYS2(SYS_fstat, fd, &st) >= 0;

			if (seen)
				found = look_of(&st);
			info.row = file_row(f->path, span, &info, seen ? &found : NULL);
			if (info.opened)
				set_opened(&info, &crema_shm->opened[info.opened - 1].line);
			same = 0;
		}
	}
	if (!same && info.kind && (unsigned int)fd < FD_TABLE)
		STORE(&words[fd], word_of(&info));
	return info;
}

/* Uses the kernel's name for the file, so any way leads to the row of its descriptors. */
static uint32_t find_by_name(const char *name, uint32_t span)
{
	const char *path = strncmp(name, "file://", 7) ? name : name + 7;
	int fd = sys_open(path, O_PATH | O_CLOEXEC, 0);
	uint32_t id, row;

	if (fd >= 0) {
		row = look(fd, span).row;
		sys_close(fd);
		return row;
	}
	if (strstr(name, "://"))
		return file_row_remote(url_id(name, strlen(name)), span);
	id = arena_bulk_id(name, (uint32_t)strlen(name));
	return file_row_make(id, span, CREMA_FILE_DATA, CREMA_SHM_FILESYSTEMS, NULL);
}

/* Of baskets, which name their file each time. The ids and rows are those of crema_shm. */
static struct {
	uint32_t name, span, row;
} recent[64];

void file_names_forget(void)
{
	memset(recent, 0, sizeof(recent));
}

uint32_t file_row_by_name(const char *name, uint32_t span)
{
	uint32_t id = arena_bulk_id(name, (uint32_t)strlen(name)), at = (id / 4 + span / 4) % 64;

	if (!id || recent[at].name != id || recent[at].span != span) {
		recent[at].row = find_by_name(name, span);
		recent[at].name = id;
		recent[at].span = span;
		if (recent[at].row && id)
			STORE(&crema_shm->file[recent[at].row - 1].name, id);
	}
	return recent[at].row;
}
