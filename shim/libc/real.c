/* SPDX-License-Identifier: BSD-3-Clause */
/* real.c - finds the interposed functions without dlsym. */
#define _GNU_SOURCE
#include "shim/libc/real.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "shim/libc/sys.h"

#define VERSYM_HIDDEN 0x8000u

struct object {
	const char *strings;
	const ElfW(Sym) * symbols;
	const uint32_t *gnu_hash;
	const uint16_t *versym;
};

struct search {
	const char *const *names;
	void **found;
	size_t count;
	const char *object_part; /* only objects whose path contains this; NULL: those after ours */
	int behind_us;
};

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static const void *dynamic_address(const struct dl_phdr_info *info, ElfW(Addr) value)
{
	/* glibc relocates the entries of the dynamic section in place, except in the vDSO. */
	return (const void *)(value < info->dlpi_addr ? value + info->dlpi_addr : value);
}

static int object_open(const struct dl_phdr_info *info, struct object *o)
{
	const ElfW(Dyn) *d = NULL;

	memset(o, 0, sizeof(*o));
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		const void *p = dynamic_address(info, d->d_un.d_ptr);

		if (d->d_tag == DT_STRTAB)
			o->strings = p;
		else if (d->d_tag == DT_SYMTAB)
			o->symbols = p;
		else if (d->d_tag == DT_GNU_HASH)
			o->gnu_hash = p;
		else if (d->d_tag == DT_VERSYM)
			o->versym = p;
	}
	return o->strings && o->symbols && o->gnu_hash ? 0 : -ENOENT;
}

static const ElfW(Sym) * object_lookup(const struct object *o, const char *name)
{
	const uint32_t *h = o->gnu_hash, buckets = h[0], first = h[1], blooms = h[2];
	const uint32_t *bucket = h + 4 + blooms * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;
	uint32_t hash = gnu_hash(name), i = buckets ? bucket[hash % buckets] : 0;
	const ElfW(Sym) *hidden = NULL;

	if (i < first)
		return NULL;
	for (;; i++) {
		const ElfW(Sym) *s = &o->symbols[i];
		uint32_t c = chain[i - first];

		if ((c | 1) == (hash | 1) && s->st_shndx != SHN_UNDEF && s->st_value &&
		    !strcmp(o->strings + s->st_name, name)) {
			if (!o->versym || !(o->versym[i] & VERSYM_HIDDEN))
				return s;
			hidden = s;
		}
		if (c & 1)
			return hidden;
	}
}

static int is_ourselves(const struct dl_phdr_info *info)
{
	ElfW(Addr) here = (ElfW(Addr)) & real_resolve;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && here - info->dlpi_addr - p->p_vaddr < p->p_memsz)
			return 1;
	}
	return 0;
}

static int search_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	struct object o;

	(void)size;
	if (is_ourselves(info)) {
		s->behind_us = 1;
		return 0;
	}
	if (s->object_part ? !info->dlpi_name || !strstr(info->dlpi_name, s->object_part)
			   : !s->behind_us)
		return 0;
	if (object_open(info, &o))
		return 0;
	for (size_t i = 0; i < s->count; i++) {
		const ElfW(Sym) *sym = s->found[i] ? NULL : object_lookup(&o, s->names[i]);

		if (!sym)
			continue;
		s->found[i] = (void *)(info->dlpi_addr + sym->st_value);
		if (ELF64_ST_TYPE(sym->st_info) == STT_GNU_IFUNC)
			s->found[i] = ((void *(*)(void))s->found[i])();
	}
	return 0;
}

void *real_find(const char *name, const char *object_part)
{
	void *found = NULL;
	struct search s = {&name, &found, 1, object_part ? object_part : "", 0};

	dl_iterate_phdr(search_object, &s);
	return found;
}

struct size_search {
	const char *name;
	const void *address;
	size_t bytes;
};

static int search_size(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct size_search *s = arg;
	const ElfW(Sym) * sym;
	struct object o;

	(void)size;
	if (object_open(info, &o))
		return 0;
	sym = object_lookup(&o, s->name);
	if (!sym || (const void *)(info->dlpi_addr + sym->st_value) != s->address)
		return 0;
	s->bytes = sym->st_size;
	return 1;
}

size_t real_symbol_bytes(const char *name, const void *address)
{
	struct size_search s = {name, address, 0};

	dl_iterate_phdr(search_size, &s);
	return s.bytes;
}

struct range_search {
	ElfW(Addr) address, start, end;
};

static int search_range(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct range_search *s = arg;
	ElfW(Addr) start = 0, end = 0;
	int inside = 0;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		ElfW(Addr) from = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		start = end ? start : from;
		end = from + p->p_memsz;
		inside |= s->address - from < p->p_memsz;
	}
	s->start = start;
	s->end = end;
	return inside;
}

int real_object_of(const void *address, const void **start, const void **end)
{
	struct range_search s = {(ElfW(Addr))address, 0, 0};

	if (!dl_iterate_phdr(search_range, &s))
		return 0;
	*start = (const void *)s.start;
	*end = (const void *)s.end;
	return 1;
}

struct name_search {
	const void *address;
	const char *part;
};

static int search_name(struct dl_phdr_info *info, size_t size, void *arg)
{
	const struct name_search *s = arg;
	struct range_search in = {(ElfW(Addr))s->address, 0, 0};

	return search_range(info, size, &in) && info->dlpi_name && strstr(info->dlpi_name, s->part);
}

int real_object_named(const void *address, const char *part)
{
	struct name_search s = {address, part};

	return dl_iterate_phdr(search_name, &s);
}

static int remember_path(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	if (!is_ourselves(info))
		return 0;
	strncpy(arg, info->dlpi_name ? info->dlpi_name : "", 4095);
	return 1;
}

const char *real_own_path(void)
{
	static char path[4096];

	if (!path[0])
		dl_iterate_phdr(remember_path, path);
	return path;
}

/* Stands for a missing function: this machine's kernel or libc does not have it. */
static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

#define HOOK(family, ret, name, params, args, fd, size)                                            \
	static ret first_##name params                                                             \
	{                                                                                          \
		real_resolve();                                                                    \
		return real.name args;                                                             \
	}
#include "hooks.def"
#undef HOOK

struct real real = {
#define HOOK(family, ret, name, params, args, fd, size) .name = first_##name,
#include "hooks.def"
#undef HOOK
};

void real_resolve(void)
{
	static const char *const names[] = {
#define HOOK(family, ret, name, params, args, fd, size) #name,
#include "hooks.def"
#undef HOOK
	};
	static const size_t offsets[] = {
#define HOOK(family, ret, name, params, args, fd, size) offsetof(struct real, name),
#include "hooks.def"
#undef HOOK
	};
	enum { COUNT = sizeof(names) / sizeof(names[0]) };
	void *found[COUNT] = {0};
	struct search s = {names, found, COUNT, NULL, 0};
	int saved = errno;

	dl_iterate_phdr(search_object, &s);
	for (size_t i = 0; i < COUNT; i++) {
		void **to = (void **)((char *)&real + offsets[i]);
		void *f = found[i] ? found[i] : (void *)missing;

		__atomic_store_n(to, f, __ATOMIC_RELAXED);
	}
	errno = saved;
}
