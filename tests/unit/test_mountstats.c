/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_mountstats.c - counters of NFS and Lustre mounts, in the formats of several kernels.
 *
 * The texts are written from the formats, not recorded: fs/nfs/super.c and net/sunrpc/stats.c of
 * Linux (statvers 1.0, and 1.1 since 2.6.32), fs/proc_namespace.c for the first line; Lustre's
 * obdclass/lprocfs_status.c (snapshot_time "secs.usecs" up to 2.10, "secs.nsecs" later, with
 * start_time and elapsed_time since 2.15; with and without the sum of squares). Recorded files are
 * read from the folders in CREMA_RECORDED_MOUNTS (tests/integration/test_mounts_recorded.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/mountstats.h"

#define NFS3                                                                                       \
	"device filer:/home mounted on /home with fstype nfs statvers=1.0\n"                       \
	"\topts:\trw,vers=3,rsize=65536\n\tage:\t1000\n"                                           \
	"\tcaps:\tcaps=0x3fc7,wtmult=512,dtsize=8192,bsize=0,namlen=255\n"                         \
	"\tsec:\tflavor=1,pseudoflavor=1\n"                                                        \
	"\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n"           \
	"\tbytes:\t1000 20 300 40 5000 60 70 80 \n"                                                \
	"\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)\n"                                        \
	"\txprt:\ttcp 900 1 1 0 0 100 100 0 100 0\n\tper-op statistics\n"                          \
	"\t        NULL: 0 0 0 0 0 0 0 0\n\t        READ: 9 9 0 1 9999 1 1 1\n\n"
#define NFS4(point)                                                                                \
	"device srv:/d\\040ata mounted on " point " with fstype nfs4 statvers=1.1\n"               \
	"\topts:\trw,vers=4.2,rsize=1048576,clientaddr=10.0.0.2\n\tage:\t77\n"                     \
	"\timpl_id:\tname='',domain='',date='0,0'\n"                                               \
	"\tcaps:\tcaps=0x3ffbffff,wtmult=512,dtsize=1048576,bsize=0,namlen=255\n"                  \
	"\tnfsv4:\tbm0=0xfdffbfff,acl=0x3,sessions,pnfs=not configured,lease_time=90\n"            \
	"\tsec:\tflavor=1,pseudoflavor=1\n"                                                        \
	"\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27\n"     \
	"\tbytes:\t18446744073709550000 0 7 0 12100000000 0 3 0\n"                                 \
	"\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"                                        \
	"\txprt:\ttcp 0 0 1 0 5 9 9 0 9 0 2 9 9\n\tper-op statistics\n"                            \
	"\t        READ: 9 9 0 1 9999 1 1 1 0\n\n"
#define ROOT "device /dev/vda mounted on / with fstype ext4\n"

static const char mountinfo[] = "21 1 254:0 / / rw - ext4 /dev/vda rw\n"
				"30 21 0:50 / /home rw - nfs filer:/home rw,vers=3\n"
				"31 21 0:51 / /data rw - nfs4 srv:/d\\040ata rw,vers=4.2\n"
				"32 21 0:51 /in /inner ro - nfs4 srv:/d\\040ata rw,vers=4.2\n";

static struct text text_of(const char *s)
{
	return (struct text){s, strlen(s)};
}

static int sum(const char *stats, struct mount_bytes *b)
{
	return mountstats_sum(text_of(stats), text_of(mountinfo), b);
}

static void test_nfs(void **state)
{
	struct mount_bytes b;
	uint32_t set;

	(void)state;
	assert_int_equal(sum(ROOT, &b), 0);
	assert_true(!b.mounts && !b.read_bytes && !b.server_read_bytes);
	assert_int_equal(sum(ROOT NFS3, &b), 0);
	assert_true(b.mounts == 1 && b.read_bytes == 1300 && b.server_read_bytes == 5000);
	assert_int_equal(sum(NFS4("/data"), &b), 0);
	assert_true(b.read_bytes == 18446744073709550007u && b.server_read_bytes == 12100000000u);
	/* A file system that is mounted twice has one set of counters. */
	assert_int_equal(sum(NFS3 NFS4("/data") ROOT NFS4("/inner"), &b), 0);
	assert_true(b.mounts == 2 && b.server_read_bytes == 12100005000u);
	set = b.set;
	assert_int_equal(sum(NFS4("/inner") NFS3, &b), 0);
	assert_true(b.set == set);
	assert_int_equal(sum(NFS3, &b), 0);
	assert_true(b.set && b.set != set);
	/* Without its device or its numbers the sum is unknown. */
	assert_int_equal(sum(NFS4("/elsewhere"), &b), -EBADMSG);
	assert_int_equal(sum("device a mounted on /home with fstype nfs statvers=1.0\n", &b),
			 -EBADMSG);
	assert_int_equal(sum("device a mounted on /home with fstype nfs statvers=1.0\n" ROOT, &b),
			 -EBADMSG);
	assert_int_equal(
		sum("device a mounted on /home with fstype nfs\n\tbytes:\t1 2 3 4 5 6 7\n", &b),
		-EBADMSG);
	assert_int_equal(sum("device a mounted on /home with fstype nfs\n"
			     "\tbytes:\t1 2 3 4 99999999999999999999 6 7 8\n",
			     &b),
			 -EBADMSG);
	assert_int_equal(sum("device nfsd mounted on /proc/fs/nfsd with fstype nfsd\n", &b), 0);
}

static int lustre(const char *stats, uint64_t *bytes)
{
	return lustre_read_sum(text_of(stats), bytes);
}

#define LLITE_OLD                                                                                  \
	"snapshot_time             1409777887.590578 secs.usecs\n"                                 \
	"dirty_pages_hits          8 samples [regs]\n"                                             \
	"read_bytes                20 samples [bytes] 1 1048576 31000000000\n"                     \
	"write_bytes               2 samples [bytes] 1 5 9\nioctl                     1 samples "  \
	"[regs]\n"
#define OSC_NEW                                                                                    \
	"snapshot_time             1700000000.123456789 secs.nsecs\n"                              \
	"start_time                1690000000.000000000 secs.nsecs\n"                              \
	"elapsed_time              10000000.123456789 secs.nsecs\n"                                \
	"req_waittime              7 samples [usecs] 1 2 3 4\n"                                    \
	"read_bytes                3 samples [bytes] 4096 4194304 12100000000 99999999\n"

static void test_lustre(void **state)
{
	uint64_t n;

	(void)state;
	assert_int_equal(lustre(LLITE_OLD, &n), 0);
	assert_true(n == 31000000000u);
	assert_int_equal(lustre(OSC_NEW, &n), 0);
	assert_true(n == 12100000000u);
	/* Counters appear with their first event. */
	assert_int_equal(lustre("snapshot_time 1.2 secs.usecs\nopen 1 samples [regs]\n", &n), 0);
	assert_true(n == 0);
	assert_int_equal(lustre("", &n), -EBADMSG);
	assert_int_equal(lustre("snapshot_time 1.2\nread_bytes 3 samples [pages] 1 2 3\n", &n),
			 -EBADMSG);
	assert_int_equal(lustre("snapshot_time 1.2\nread_bytes 3 samples [bytes] 1 2\n", &n),
			 -EBADMSG);
}

static char root[] = "/tmp/crema-test-XXXXXX";

static void put(const char *name, const char *content)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(path, 0700);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(content, f);
	fclose(f);
}

static void test_files(void **state)
{
	struct mount_bytes nfs, b;
	char command[64];

	(void)state;
	assert_non_null(mkdtemp(root));
	mount_bytes_read(root, &nfs, &b);
	assert_true(nfs.error < 0 && b.error < 0);
	put("self/mountstats", ROOT NFS3 NFS4("/data"));
	put("self/mountinfo", mountinfo);
	mount_bytes_read(root, &nfs, &b);
	assert_int_equal(nfs.error, 0);
	assert_true(nfs.mounts == 2 && nfs.server_read_bytes == 12100005000u);
	/* Without Lustre nothing was read from it. If it is mounted and only root sees the numbers:
	 * unknown. */
	assert_int_equal(b.error, 0);
	assert_true(!b.mounts && !b.read_bytes);
	put("self/mountinfo", "40 21 0:60 / /lustre rw - lustre 10.0.0.1@o2ib:/fs rw\n");
	mount_bytes_read(root, &nfs, &b);
	assert_true(b.error < 0);
	put("fs/lustre/llite/fs-ffff8801/stats", LLITE_OLD);
	mount_bytes_read(root, &nfs, &b);
	assert_true(b.error < 0);
	put("fs/lustre/osc/fs-OST0000-osc-ffff8801/stats", OSC_NEW);
	put("fs/lustre/osc/fs-OST0001-osc-ffff8801/stats", OSC_NEW);
	put("fs/lustre/osc/num_refs", "2\n");
	mount_bytes_read(root, &nfs, &b);
	assert_int_equal(b.error, 0);
	assert_true(b.mounts == 3 && b.read_bytes == 31000000000u &&
		    b.server_read_bytes == 24200000000u);
	put("fs/lustre/osc/fs-OST0001-osc-ffff8801/stats", "clear\n");
	mount_bytes_read(root, &nfs, &b);
	assert_int_equal(b.error, -EBADMSG);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	assert_int_equal(system(command), 0);
	/* This machine's. */
	mount_bytes_read("/proc", &nfs, &b);
	assert_int_equal(nfs.error, 0);
}

/* Each folder is a /proc; its sums are printed. */
static void test_recorded(void **state)
{
	const char *from = getenv("CREMA_RECORDED_MOUNTS");
	struct mount_bytes nfs, lustre_bytes;
	char path[PATH_MAX];
	struct dirent *e;
	DIR *dir;

	(void)state;
	if (!from)
		return;
	dir = opendir(from);
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", from, e->d_name);
		mount_bytes_read(path, &nfs, &lustre_bytes);
		print_message("recorded %s %d %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", e->d_name,
			      nfs.error, nfs.mounts, nfs.read_bytes, nfs.server_read_bytes);
	}
	closedir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nfs),
		cmocka_unit_test(test_lustre),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_recorded),
	};

	return cmocka_run_group_tests_name("mountstats", tests, NULL, NULL);
}
