/* SPDX-License-Identifier: BSD-3-Clause */
/* dask_config.c - reads Dask's YAML files with libyaml. */
#include "common/dask_config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* "a-b" and "a_b" are the same name to Dask. */
static bool same_name(const yaml_node_t *node, const char *name, size_t n)
{
	const char *text = (const char *)node->data.scalar.value;

	if (node->type != YAML_SCALAR_NODE || node->data.scalar.length != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (text[i] != name[i] && !(strchr("-_", text[i]) && strchr("-_", name[i])))
			return false;
	}
	return true;
}

static yaml_node_t *member(yaml_document_t *doc, yaml_node_t *map, const char *name, size_t n)
{
	yaml_node_pair_t *pair;

	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
		if (same_name(yaml_document_get_node(doc, pair->key), name, n))
			return yaml_document_get_node(doc, pair->value);
	}
	return NULL;
}

static int take(const char *text, size_t n, char *out, size_t size)
{
	if (!n || !strcmp(text, "null") || !strcmp(text, "~") || !strcmp(text, "None"))
		return -ENOENT;
	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(out, text, n);
	out[n] = '\0';
	return 0;
}

static int look_in(FILE *file, const char *key, char *out, size_t size)
{
	yaml_parser_t parser;
	yaml_document_t doc;
	yaml_node_t *node;
	int rc = -ENOENT;

	if (!yaml_parser_initialize(&parser))
		return -ENOENT;
	yaml_parser_set_input_file(&parser, file);
	if (yaml_parser_load(&parser, &doc)) {
		node = yaml_document_get_root_node(&doc);
		while (node && *key) {
			size_t n = strcspn(key, ".");

			node = member(&doc, node, key, n);
			key += n + (key[n] == '.');
		}
		if (node && node->type == YAML_SCALAR_NODE)
			rc = take((const char *)node->data.scalar.value, node->data.scalar.length,
				  out, size);
		yaml_document_delete(&doc);
	}
	yaml_parser_delete(&parser);
	return rc;
}

static int look_at(const char *path, const char *key, char *out, size_t size)
{
	FILE *file = fopen(path, "re");
	int rc = file ? look_in(file, key, out, size) : -ENOENT;

	if (file)
		fclose(file);
	return rc;
}

static int is_yaml(const struct dirent *e)
{
	const char *dot = strrchr(e->d_name, '.');

	return dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml") || !strcmp(dot, ".json"));
}

/* The last name in the folder that has it wins. Dask also accepts a file instead of a folder. */
static int look_below(const char *place, const char *key, char *out, size_t size)
{
	char path[PATH_MAX];
	struct dirent **names;
	int n = scandir(place, &names, is_yaml, alphasort), rc = -ENOENT;

	if (n < 0)
		return look_at(place, key, out, size);
	while (n--) {
		if (rc == -ENOENT &&
		    snprintf(path, sizeof(path), "%s/%s", place, names[n]->d_name) < PATH_MAX)
			rc = look_at(path, key, out, size);
		free(names[n]);
	}
	free(names);
	return rc;
}

static int look_under(const char *variable, const char *below, const char *key, char *out,
		      size_t size)
{
	const char *root = getenv(variable);
	char path[PATH_MAX];

	if (!root || !*root || snprintf(path, sizeof(path), "%s%s", root, below) >= PATH_MAX)
		return -ENOENT;
	return look_below(path, key, out, size);
}

static int from_environment(const char *key, char *out, size_t size)
{
	char name[256] = "DASK_";
	size_t at = strlen(name);
	const char *value;

	for (; *key && at + 3 < sizeof(name); key++) {
		if (*key == '.')
			name[at++] = '_';
		name[at++] = *key == '.' || *key == '-' ? '_' : (char)toupper((unsigned char)*key);
	}
	name[at] = '\0';
	value = getenv(name);
	return value ? take(value, strlen(value), out, size) : -ENOENT;
}

int dask_config_get(const char *key, char *out, size_t size)
{
	static const char *const places[][2] = {{"DASK_CONFIG", ""},
						{"HOME", "/.config/dask"},
						{"VIRTUAL_ENV", "/etc/dask"},
						{"CONDA_PREFIX", "/etc/dask"},
						{"DASK_ROOT_CONFIG", ""}};
	int rc = from_environment(key, out, size);

	for (size_t i = 0; rc == -ENOENT && i < sizeof(places) / sizeof(*places); i++)
		rc = look_under(places[i][0], places[i][1], key, out, size);
	if (rc == -ENOENT && !getenv("DASK_ROOT_CONFIG"))
		rc = look_below("/etc/dask", key, out, size);
	return rc;
}
