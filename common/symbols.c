/* SPDX-License-Identifier: BSD-3-Clause */
/* symbols.c - names of functions. */
#include "common/symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct symbol {
	uint64_t start, end;
	size_t name;
};

static bool id_matches(Elf *elf, const char *build_id)
{
	size_t n, at, next, name, desc;
	char hex[128];
	GElf_Phdr ph;
	GElf_Nhdr note;
	Elf_Data *data;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_NOTE)
			continue;
		data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz,
					    ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		for (at = 0; data && (next = gelf_getnote(data, at, &note, &name, &desc)) > 0;
		     at = next) {
			const unsigned char *id = (const unsigned char *)data->d_buf + desc;

			if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
			    memcmp((const char *)data->d_buf + name, "GNU", 4) ||
			    2 * (size_t)note.n_descsz >= sizeof(hex))
				continue;
			for (size_t k = 0; k < note.n_descsz; k++)
				snprintf(hex + 2 * k, 3, "%02x", id[k]);
			return note.n_descsz && !strcmp(hex, build_id);
		}
	}
	return false;
}

/* The full table if the file has it, else the dynamic symbols. */
static Elf_Scn *symbol_section(Elf *elf, GElf_Shdr *found)
{
	Elf_Scn *scn = NULL, *best = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &sh) || !sh.sh_entsize ||
		    (sh.sh_type != SHT_SYMTAB && (best || sh.sh_type != SHT_DYNSYM)))
			continue;
		best = scn;
		*found = sh;
		if (sh.sh_type == SHT_SYMTAB)
			break;
	}
	return best;
}

static int by_start(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

static int read_symbols(struct symbols *s)
{
	GElf_Shdr sh;
	Elf_Scn *scn = symbol_section(s->elf, &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t n = data ? data->d_size / sh.sh_entsize : 0;
	GElf_Sym sym;

	s->symbol = n ? calloc(n, sizeof(*s->symbol)) : NULL;
	if (!s->symbol)
		return n ? -ENOMEM : -ENOENT;
	s->strings = sh.sh_link;
	for (size_t i = 0; i < n && i < INT32_MAX; i++) {
		if (!gelf_getsym(data, (int)i, &sym) || !sym.st_size || sym.st_shndx == SHN_UNDEF ||
		    (GELF_ST_TYPE(sym.st_info) != STT_FUNC &&
		     GELF_ST_TYPE(sym.st_info) != STT_GNU_IFUNC))
			continue;
		s->symbol[s->n++] =
			(struct symbol){sym.st_value, sym.st_value + sym.st_size, sym.st_name};
	}
	qsort(s->symbol, s->n, sizeof(*s->symbol), by_start);
	return 0;
}

/* The path is the worker's: here it may be anything, even a pipe. */
static int open_file(struct symbols *s, const char *path)
{
	struct stat st;

	memset(s, 0, sizeof(*s));
	s->fd = -1;
	if (!path || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOENT;
	s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (s->fd < 0)
		return -errno;
	if (fstat(s->fd, &st) || !S_ISREG(st.st_mode))
		return -ENOENT;
	s->elf = elf_begin(s->fd, ELF_C_READ, NULL);
	return s->elf && elf_kind(s->elf) == ELF_K_ELF ? 0 : -EPROTO;
}

int symbols_open(struct symbols *s, const char *path, const char *build_id)
{
	int rc = open_file(s, build_id ? path : NULL);

	if (!rc && !id_matches(s->elf, build_id))
		rc = -ESTALE;
	return rc ? rc : read_symbols(s);
}

int symbols_open_any(struct symbols *s, const char *path)
{
	int rc = open_file(s, path);

	return rc ? rc : read_symbols(s);
}

static bool address_of(const struct symbols *s, uint64_t place, uint64_t *address)
{
	GElf_Phdr ph;
	size_t n;

	if (elf_getphdrnum(s->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(s->elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    place < ph.p_offset || place - ph.p_offset >= ph.p_filesz)
			continue;
		*address = place - ph.p_offset + ph.p_vaddr;
		return true;
	}
	return false;
}

const char *symbols_name(const struct symbols *s, uint64_t place)
{
	size_t low = 0, high = s->n;
	uint64_t address;

	if (!s->n || !address_of(s, place, &address))
		return NULL;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->symbol[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	/* Several may begin at one address; any that covers the address is right. */
	for (size_t i = low; i > 0 && low - i < 16; i--) {
		if (s->symbol[i - 1].end > address)
			return elf_strptr(s->elf, s->strings, s->symbol[i - 1].name);
	}
	return NULL;
}

typedef char *demangler(const char *name, char *to, size_t *size, int *status);

static demangler *find_demangler(void)
{
	static demangler *found;
	static bool tried;
	void *library;

	if (tried)
		return found;
	tried = true;
	library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
	if (library)
		*(void **)&found = dlsym(library, "__cxa_demangle");
	return found;
}

/* Where the arguments begin: the parenthesis that closes last, outside of <>. */
static size_t before_arguments(const char *name)
{
	size_t n = strcspn(name, "(");
	int within = 0;

	if (!strncmp(name + n, "(anonymous", 10) ||
	    (n >= 8 &&
	     (!strncmp(name + n - 8, "operator", 8) || !strncmp(name + n - 8, "decltype", 8))))
		return strlen(name);
	for (size_t i = 0; i < n; i++)
		within += (name[i] == '<') - (name[i] == '>');
	return within ? strlen(name) : n;
}

const char *symbols_plain(const char *name, char *to, size_t size)
{
	demangler *demangle = strncmp(name, "_Z", 2) ? NULL : find_demangler();
	int failed = 1;
	char *plain = demangle ? demangle(name, NULL, NULL, &failed) : NULL;

	if (!plain || failed) {
		free(plain);
		return name;
	}
	snprintf(to, size, "%.*s", (int)before_arguments(plain), plain);
	free(plain);
	return to;
}

bool symbols_of_libc(const char *base)
{
	return !strncmp(base, "libc.so", 7) || !strncmp(base, "libc-", 5) ||
	       !strncmp(base, "libpthread", 10);
}

void symbols_release(struct symbols *s)
{
	free(s->symbol);
	if (s->elf)
		elf_end(s->elf);
	if (s->fd >= 0)
		close(s->fd);
	memset(s, 0, sizeof(*s));
	s->fd = -1;
}
