/* SPDX-License-Identifier: BSD-3-Clause */
/* modules.c - maps and build ids. */
#include "agent/modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/procfs.h"
#include "fnv.h"

#define MODULES_MAX 4096
#define MAPS_MAX 65536
#define NOTE_BYTES 1024

/* The build id among the notes of one segment. */
static uint32_t id_of_notes(const unsigned char *p, size_t n, uint8_t *id)
{
	Elf64_Nhdr head;
	size_t name, desc;

	while (n >= sizeof(head)) {
		memcpy(&head, p, sizeof(head));
		name = ((size_t)head.n_namesz + 3) & ~(size_t)3;
		desc = ((size_t)head.n_descsz + 3) & ~(size_t)3;
		if (name > n - sizeof(head) || desc > n - sizeof(head) - name)
			return 0;
		p += sizeof(head);
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && !memcmp(p, "GNU", 4) &&
		    head.n_descsz && head.n_descsz <= MODULES_BUILD_ID) {
			memcpy(id, p + name, head.n_descsz);
			return head.n_descsz;
		}
		p += name + desc;
		n -= sizeof(head) + name + desc;
	}
	return 0;
}

static uint32_t id_of_file(int fd, uint8_t *id)
{
	unsigned char notes[NOTE_BYTES];
	Elf64_Ehdr head;
	Elf64_Phdr ph;
	uint32_t got = 0;
	ssize_t n;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(ph) || head.e_phoff > INT32_MAX)
		return 0;
	for (unsigned int i = 0; i < head.e_phnum && !got; i++) {
		if (pread(fd, &ph, sizeof(ph), (off_t)(head.e_phoff + i * sizeof(ph))) !=
		    (ssize_t)sizeof(ph))
			return 0;
		if (ph.p_type != PT_NOTE || ph.p_offset > INT64_MAX)
			continue;
		n = pread(fd, notes, ph.p_filesz < NOTE_BYTES ? ph.p_filesz : NOTE_BYTES,
			  (off_t)ph.p_offset);
		if (n > 0)
			got = id_of_notes(notes, (size_t)n, id);
	}
	return got;
}

/* Through the worker's own root, in case it runs in a container. A file that was replaced on disk
 * since it was mapped is called "(deleted)", and has no id any more. */
static uint32_t build_id(int pid, const char *path, uint8_t *id)
{
	char at[PATH_MAX + 32];
	struct stat st;
	uint32_t n = 0;
	int fd;

	if (snprintf(at, sizeof(at), "/proc/%d/root%s", pid, path) >= (int)sizeof(at))
		return 0;
	fd = open(at, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = id_of_file(fd, id);
	close(fd);
	return n;
}

static void *grow(void *v, size_t n, size_t *cap, size_t item)
{
	size_t more = *cap ? 2 * *cap : 64;
	void *p = v;

	if (n < *cap)
		return v;
	p = realloc(v, more * item);
	if (p)
		*cap = more;
	return p;
}

/* Index of the module, or -errno. */
static ssize_t module_of(struct modules *m, int pid, const char *path)
{
	struct module *v, *one;

	for (size_t i = m->n; i > 0; i--) {
		if (!strcmp(m->module[i - 1].path, path))
			return (ssize_t)i - 1;
	}
	if (m->n >= MODULES_MAX)
		return -ENOSPC;
	v = grow(m->module, m->n, &m->cap, sizeof(*v));
	if (!v)
		return -ENOMEM;
	m->module = v;
	one = &v[m->n];
	memset(one, 0, sizeof(*one));
	one->path = strdup(path);
	if (!one->path)
		return -ENOMEM;
	if (!m->no_ids)
		one->build_id_bytes = build_id(pid, path, one->build_id);
	one->id = crema_hash_more(CREMA_HASH_BEGIN, path, strlen(path));
	one->id = crema_hash_more(one->id, one->build_id, one->build_id_bytes);
	return (ssize_t)m->n++;
}

static void take_line(struct modules *m, int pid, const char *line)
{
	struct mapping map, *v;
	char perms[5];
	ssize_t module;
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &map.start, &map.end,
		   perms, &map.offset, &at) != 4 ||
	    !at || perms[2] != 'x' || line[at] != '/' || m->maps >= MAPS_MAX)
		return;
	module = module_of(m, pid, line + at);
	v = module >= 0 ? grow(m->map, m->maps, &m->maps_cap, sizeof(*v)) : NULL;
	if (!v)
		return;
	m->map = v;
	map.module = (size_t)module;
	v[m->maps++] = map;
}

int modules_read(struct modules *m, int pid)
{
	struct buf maps = BUF_INIT;
	char *text, *line;
	size_t before = m->maps;
	int rc = procfs_slurp_all(&maps, "/proc/%d/maps", pid);

	m->maps = 0;
	for (text = rc ? NULL : (char *)maps.data; (line = strsep(&text, "\n"));)
		take_line(m, pid, line);
	/* For a process that has ended there are none, and nothing has been overwritten. */
	if (!m->maps)
		m->maps = before;
	buf_release(&maps);
	return rc;
}

void modules_release(struct modules *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->module[i].path);
	free(m->module);
	free(m->map);
	memset(m, 0, sizeof(*m));
}

struct module *modules_find(struct modules *m, uint64_t address, uint64_t *file_offset)
{
	size_t low = 0, high = m->maps;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (m->map[mid].end <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == m->maps || m->map[low].start > address)
		return NULL;
	*file_offset = address - m->map[low].start + m->map[low].offset;
	return &m->module[m->map[low].module];
}
