/* SPDX-License-Identifier: BSD-3-Clause */
/* replay.c - runs a target on the files of a folder, each complete, truncated and with one bit
 * flipped. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define CUTS 4

size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most)
{
	(void)data;
	return n < most ? n : most;
}

/* Passes a copy of the exact size: ASan detects reads past its end. */
static void give(const uint8_t *data, size_t n, size_t flip)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	memcpy(copy, data, n);
	if (flip < n * 8)
		copy[flip / 8] ^= (uint8_t)(1u << flip % 8);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

static int replay(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t n;

	if (!file) {
		fprintf(stderr, "cannot read '%s'\n", path);
		return 1;
	}
	n = fread(data, 1, sizeof(data), file);
	fclose(file);
	give(data, n, SIZE_MAX);
	for (size_t i = 1; i < CUTS && n; i++) {
		give(data, n * i / CUTS, SIZE_MAX);
		give(data, n, n * 8 * i / CUTS);
	}
	return 0;
}

int main(int argc, char **argv)
{
	char path[4096];
	struct dirent *e;
	unsigned int files = 0;
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;

	if (!dir) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], e->d_name);
		if (replay(path))
			return 1;
		files++;
	}
	closedir(dir);
	printf("%s: %u files survived\n", argv[0], files);
	return files ? 0 : 1;
}
