/* SPDX-License-Identifier: BSD-3-Clause */
/* watch.c - the cost of the collector's process, and requests of its pages. */
#include "tests/bench/swarm/watch.h"

#include <curl/curl.h>
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The process */

static uint64_t first_number(const char *path)
{
	uint64_t value = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return 0;
	if (fscanf(file, "%" SCNu64, &value) != 1)
		value = 0;
	fclose(file);
	return value;
}

uint64_t watch_cpu_ns(pid_t pid)
{
	char path[64 + sizeof(((struct dirent *)0)->d_name)];
	struct dirent *entry;
	uint64_t sum = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, entry->d_name);
		sum += first_number(path);
	}
	if (dir)
		closedir(dir);
	return sum;
}

static uint64_t status_bytes(pid_t pid, const char *format)
{
	char path[64], line[256];
	uint64_t kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, format, strlen(format)))
			kib = strtoull(line + strlen(format), NULL, 10);
	}
	if (file)
		fclose(file);
	return kib * 1024;
}

uint64_t watch_rss_bytes(pid_t pid)
{
	return status_bytes(pid, "VmRSS:");
}

uint64_t watch_peak_bytes(pid_t pid)
{
	return status_bytes(pid, "VmHWM:");
}

/* The pages */

#define PAGES 4u

struct watch {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	char http[256];
	unsigned int pages;
	struct watch_page page[PAGES];
	double least, next[PAGES];
};

static double now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static size_t swallow(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	*(uint64_t *)arg += size * n;
	return size * n;
}

/* Returns the seconds that the response took. */
static double ask(struct watch *watch, CURL *curl, struct watch_page *page)
{
	char url[400];
	uint64_t bytes = 0;
	double begin = now_seconds(), took;
	long status = 0;

	snprintf(url, sizeof(url), "http://%s/%s", watch->http, page->name);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, &bytes);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, 120L);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
	if (curl_easy_perform(curl) == CURLE_OK)
		curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	took = now_seconds() - begin;
	/* Without a run yet, data.json is 404. */
	if (status == 200 || status == 404)
		page->answers++;
	else
		page->failures++;
	page->bytes = bytes;
	if (took > page->slowest)
		page->slowest = took;
	return took;
}

static void rest(struct watch *watch, double until)
{
	struct timespec ts;

	ts.tv_sec = (time_t)until;
	ts.tv_nsec = (long)((until - (double)ts.tv_sec) * 1e9);
	while (!watch->stop && now_seconds() < until)
		pthread_cond_timedwait(&watch->wake, &watch->lock, &ts);
}

static void *run(void *arg)
{
	struct watch *watch = arg;
	CURL *curl = curl_easy_init();
	double took;
	unsigned int i;

	pthread_mutex_lock(&watch->lock);
	while (curl && !watch->stop) {
		for (i = 0; i < watch->pages && !watch->stop; i++) {
			if (now_seconds() < watch->next[i])
				continue;
			pthread_mutex_unlock(&watch->lock);
			took = ask(watch, curl, &watch->page[i]);
			pthread_mutex_lock(&watch->lock);
			took = 4 * took > watch->least ? 4 * took : watch->least;
			watch->next[i] = now_seconds() + took;
		}
		rest(watch, now_seconds() + 0.1);
	}
	pthread_mutex_unlock(&watch->lock);
	if (curl)
		curl_easy_cleanup(curl);
	return NULL;
}

struct watch *watch_start(const char *http, double least, const char *const *names)
{
	struct watch *watch = calloc(1, sizeof(*watch));
	pthread_condattr_t attr;

	if (!watch)
		return NULL;
	curl_global_init(CURL_GLOBAL_DEFAULT);
	snprintf(watch->http, sizeof(watch->http), "%s", http);
	watch->least = least;
	for (; watch->pages < PAGES && names[watch->pages]; watch->pages++)
		watch->page[watch->pages].name = names[watch->pages];
	pthread_mutex_init(&watch->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&watch->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (pthread_create(&watch->thread, NULL, run, watch)) {
		free(watch);
		return NULL;
	}
	return watch;
}

unsigned int watch_stop(struct watch *watch, const struct watch_page **pages)
{
	pthread_mutex_lock(&watch->lock);
	watch->stop = true;
	pthread_cond_signal(&watch->wake);
	pthread_mutex_unlock(&watch->lock);
	pthread_join(watch->thread, NULL);
	*pages = watch->page;
	return watch->pages;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	pthread_cond_destroy(&watch->wake);
	pthread_mutex_destroy(&watch->lock);
	free(watch);
}
