/* SPDX-License-Identifier: BSD-3-Clause */
/* test_calibration.c - verdicts: text and file, the mounts that they apply to, and how they are
 * derived. */
#include "tests/unit/fake_shm.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include "collector/doctor/ways.h"
#include "common/calibration.h"
#include "common/pack.h"
#include "common/procfs.h"
#include "wire.h"

#define MIB 1048576u

static const char mountinfo[] =
	"21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"
	"not a mount\n"
	"30 21 0:51 /sub /d\\040x ro,nosuid master:2 propagate_from:1 - nfs4 srv:/x "
	"rw,vers=4.2,rsize=1048576,clientaddr=10.0.0.7,addr=10.0.0.1,local_lock=none\n"
	"31 21 0:52 / /e rw - fuse.eos eos rw,user_id=0";

static void test_mounts(void **state)
{
	struct text all = {mountinfo, sizeof(mountinfo) - 1}, rest = all;
	char options[MOUNT_OPTIONS];
	struct mount m;

	(void)state;
	assert_true(mounts_next(&rest, &m));
	assert_true(m.id == 21 && m.dev == makedev(254, 0) && text_is(m.type, "ext4"));
	assert_true(mounts_next(&rest, &m));
	assert_true(m.id == 30 && text_is(m.point, "/d\\040x") && text_is(m.source, "srv:/x"));
	assert_true(mounts_next(&rest, &m));
	assert_true(m.id == 31 && text_is(m.type, "fuse.eos"));
	assert_false(mounts_next(&rest, &m));
	assert_true(mounts_find(all, makedev(0, 51), &m));
	assert_true(mounts_options(&m, options));
	assert_string_equal(options, "rw,vers=4.2,rsize=1048576,local_lock=none");
	assert_false(mounts_find(all, makedev(0, 99), &m));
	/* Each prefix, directly before an unreadable page. */
	for (size_t n = 0; n < sizeof(mountinfo); n++) {
		char *copy = malloc(n ? n : 1);

		memcpy(copy, mountinfo, n);
		rest = (struct text){copy, n};
		while (mounts_next(&rest, &m))
			mounts_options(&m, options);
		free(copy);
	}
}

static struct verdict verdict(bool right, const char *type, const char *kernel, const char *options)
{
	struct verdict v = {.right = right,
			    .time_s = 7,
			    .charged_bytes = right ? 64 * MIB : 0,
			    .needed_bytes = 64 * MIB};

	strcpy(v.type, type);
	strcpy(v.kernel, kernel);
	strcpy(v.options, options);
	strcpy(v.way, right ? "all" : "small reads");
	return v;
}

static bool applies(const struct buf *b, const char *type, const char *kernel, const char *options)
{
	struct verdict v = verdict(false, type, kernel, options);

	return calibration_find(b, &v) && v.right;
}

static void test_text(void **state)
{
	struct verdict right = verdict(true, "nfs4", "6.1", "rw,vers=4.2"), v;
	struct verdict wrong = verdict(false, "fuse.eos", "6.1", "rw");
	char figures[CALIBRATION_FIGURES];
	struct buf b = BUF_INIT;

	(void)state;
	assert_int_equal(calibration_put(&b, &right), 0);
	assert_int_equal(calibration_put(&b, &wrong), 0);
	assert_int_equal(calibration_put(&b, &right), 0); /* replaced */
	assert_int_equal(buf_lines(&b), 4);
	assert_int_equal(calibration_check((char *)b.data, b.len), 0);
	assert_true(applies(&b, "nfs4", "6.1", "rw,vers=4.2"));
	assert_false(applies(&b, "nfs", "6.1", "rw,vers=4.2"));
	assert_false(applies(&b, "nfs4", "6.2", "rw,vers=4.2"));
	assert_false(applies(&b, "nfs4", "6.1", "rw,vers=4.1"));
	assert_false(applies(&b, "nfs4", "6.1", "rw,vers=4.2,nocto"));
	assert_false(applies(&b, "fuse.eos", "6.1", "rw"));
	v = wrong;
	assert_true(calibration_find(&b, &v));
	assert_string_equal(calibration_figures(figures, &v), "charged 0 of 64 MiB (small reads)");
	/* Whatever is truncated, added or changed: a damaged file has no verdict. */
	for (size_t n = 0; n < b.len; n++) {
		assert_int_equal(calibration_check((char *)b.data, n), -EBADMSG);
		b.data[n] ^= 1;
		assert_true(calibration_check((char *)b.data, b.len) < 0);
		b.data[n] ^= 1;
	}
	buf_add(&b, "right x y z 1 1 1 all\n", 22);
	assert_int_equal(calibration_check((char *)b.data, b.len), -EBADMSG);
	buf_clear(&b);
	buf_add(&b, "crema calibration 2\nnew\n", 24);
	assert_int_equal(calibration_check((char *)b.data, b.len), -EPROTO);
	buf_release(&b);
}

/* calibration_unpack() of {key: text}; in its own allocation, so that a sanitizer sees reads past
 * its end. */
static int unpacked(const char *key, const void *text, size_t n, struct buf *out)
{
	struct packed_map map;
	struct unpack u;
	struct buf *packed;
	char *copy;
	int rc;

	pack_kv_str(packed_map_begin(&map), key, text, n);
	packed = packed_map_end(&map);
	copy = malloc(packed->len);
	memcpy(copy, packed->data, packed->len);
	assert_int_equal(unpack_open(&u, copy, packed->len), 0);
	rc = calibration_unpack(out, &u.root);
	unpack_release(&u);
	free(copy);
	buf_release(packed);
	return rc;
}

/* What is not a complete calibration leaves no verdict. */
static void test_shipped_text(void **state)
{
	struct verdict right = verdict(true, "nfs4", "6.1", "rw"), other = right, v;
	struct buf b = BUF_INIT, out = BUF_INIT;
	msgpack_object number = {.type = MSGPACK_OBJECT_POSITIVE_INTEGER};

	(void)state;
	assert_int_equal(calibration_put(&b, &right), 0);
	assert_int_equal(unpacked("text", b.data, b.len, &out), 0);
	v = verdict(false, "nfs4", "6.1", "rw");
	assert_true(calibration_find(&out, &v) && v.right);
	assert_int_equal(unpacked("text", NULL, 0, &out), 0);
	assert_int_equal(out.len, 0);
	for (size_t n = 0; n < b.len; n++) {
		buf_add(&out, "x", 1);
		assert_int_equal(unpacked("text", b.data, n, &out), -EBADMSG);
		assert_int_equal(out.len, 0);
		for (int bit = 0; bit < 8; bit++) {
			b.data[n] ^= (unsigned char)(1 << bit);
			assert_true(unpacked("text", b.data, b.len, &out) < 0);
			assert_int_equal(out.len, 0);
			b.data[n] ^= (unsigned char)(1 << bit);
		}
	}
	assert_int_equal(unpacked("texts", b.data, b.len, &out), -EBADMSG);
	assert_int_equal(calibration_unpack(&out, &number), -EBADMSG);
	assert_int_equal(unpacked("text", "crema calibration 2\nnew\n", 24, &out), -EPROTO);
	for (int i = 0; b.len <= CREMA_CALIBRATION_BYTES; i++) {
		assert_int_equal(unpacked("text", b.data, b.len, &out), 0);
		snprintf(other.options, sizeof(other.options), "%0999d", i);
		assert_int_equal(calibration_put(&b, &other), 0);
	}
	assert_int_equal(unpacked("text", b.data, b.len, &out), -EFBIG);
	assert_int_equal(out.len, 0);
	buf_release(&b);
	buf_release(&out);
}

static void write_file(const char *path, const struct buf *b, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, b->data, b->len), b->len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void test_file(void **state)
{
	struct verdict v = verdict(true, "nfs4", "6.1", "rw");
	char dir[] = "/tmp/crema-test-XXXXXX", path[64], line[512];
	struct buf b = BUF_INIT, out = BUF_INIT;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/calibration", dir);
	assert_int_equal(calibration_read(&out, path), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(calibration_put(&b, &v), 0);
	write_file(path, &b, 0644);
	assert_int_equal(calibration_read(&out, path), 0);
	assert_true(calibration_find(&out, &v));
	write_file(path, &b, 0646);
	assert_int_equal(calibration_read(&out, path), -EPERM);
	assert_int_equal(out.len, 0);
	if (geteuid() == 0) {
		write_file(path, &b, 0600);
		assert_int_equal(chown(path, 1234, 1234), 0);
		assert_int_equal(calibration_read(&out, path), -EPERM);
		assert_non_null(strstr(calibration_explain(line, sizeof(line), -EPERM, path),
				       "another user"));
		assert_int_equal(chown(path, 0, 0), 0);
	}
	b.len -= 5;
	write_file(path, &b, 0600);
	assert_int_equal(calibration_read(&out, path), -EBADMSG);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(calibration_read(&out, path), -EBADMSG); /* does not hang */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	buf_release(&b);
	buf_release(&out);
}

#define KIND(kind, f_type, good)                                                                   \
	calibration_kind(FSKIND_##kind, f_type, &(struct verdict){.right = (good)})

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(KIND(UNKNOWN, 0x6969, true), FSKIND_CALIBRATED);
	assert_int_equal(KIND(UNKNOWN, 0x6969, false), FSKIND_UNKNOWN);
	assert_int_equal(KIND(EXACT, 0xEF53, true), FSKIND_EXACT);
	assert_int_equal(KIND(EXACT, 0xEF53, false), FSKIND_UNKNOWN);
	assert_int_equal(KIND(UNKNOWN, 0x65735546, true), FSKIND_UNKNOWN); /* FUSE */
	assert_int_equal(KIND(UNKNOWN, 0x794c7630, true), FSKIND_UNKNOWN); /* overlay */
	assert_int_equal(KIND(NONE, 0x01021994, false), FSKIND_NONE);
	assert_int_equal(calibration_kind(FSKIND_UNKNOWN, 0x6969, NULL), FSKIND_UNKNOWN);
}

/* As mountinfo shows them (EOS, CVMFS, CephFS by its kernel client and by ceph-fuse, GPFS, Lustre):
 * unknown, each by a name that its site knows. */
static void test_names(void **state)
{
	static const struct {
		int64_t f_type;
		const char *line, *name;
	} site[] = {
		{0x65735546, "fuse.eosxd eosuser rw,user_id=0,group_id=0,allow_other",
		 "fuse.eosxd"},
		{0x65735546, "fuse eosatlas rw,user_id=0,group_id=0", "fuse (eosatlas)"},
		{0x65735546, "fuse cvmfs2 ro,user_id=991,group_id=986", "fuse (cvmfs2)"},
		{0x65735546, "fuse.ceph-fuse ceph-fuse rw,user_id=0", "fuse.ceph-fuse"},
		{0x65735546, "fuse me@host:/home/me rw", "fuse"},
		{0x65735546, "fuse /secret rw", "fuse"},
		{0x65735546, "fuse a-name-of-17-bytes rw", "fuse"},
		{0x65735546, "fuse.a-subtype-of-23-bytes x rw", "fuse"},
		{0x65735546, "fuseblk /dev/sdb1 rw", "fuse"},
		{0x65735546, "fuse. x rw", "fuse"},
		{0x00C36400, "ceph 192.0.2.1:6789,192.0.2.2:6789:/volumes/a rw,name=a,acl", "ceph"},
		{0x47504653, "gpfs gpfs0 rw", "gpfs"},
		{0x0BD00BD0, "lustre 192.0.2.9@tcp:/scratch rw,flock,lazystatfs", "lustre"},
		{0x6969, "nfs4 server:/x rw", "nfs"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(site) / sizeof(*site); i++) {
		char line[256], name[FSKIND_NAME];
		struct mount m;
		int n = snprintf(line, sizeof(line), "36 21 0:77 / /site rw,relatime - %s",
				 site[i].line);

		assert_int_equal(fskind_of(site[i].f_type, name), FSKIND_UNKNOWN);
		assert_true(mounts_find((struct text){line, (size_t)n}, makedev(0, 77), &m));
		if (site[i].f_type == 0x65735546)
			fskind_name_fuse(name, &m);
		assert_string_equal(name, site[i].name);
	}
}

/* The file system of /tmp with another type, as the shim may see it, and its real mount. */
static enum fskind kind_in_agent(struct fake *f, int64_t f_type, const char *path,
				 const char **figures)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	memset(&f->kinds, 0, sizeof(f->kinds));
	f->shm->filesystem[0] =
		(struct crema_filesystem){.state = 2, .f_type = f_type, .dev = st.st_dev};
	assert_true(fskinds_poll(&f->kinds, &f->view, getpid()));
	*figures = f->kinds.entry[0].figures;
	return f->kinds.entry[0].kind;
}

static void test_agent(void **state)
{
	char dir[] = "/tmp/crema-test-XXXXXX", path[64];
	struct fake *f = *state;
	struct buf mounts = BUF_INIT, b = BUF_INIT;
	const char *figures;
	struct verdict v;
	struct mount m;
	struct stat st;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/calibration", dir);
	setenv("CREMA_CALIBRATION", path, 1);
	assert_int_equal(procfs_slurp_all(&mounts, "/proc/self/mountinfo"), 0);
	assert_int_equal(stat("/proc", &st), 0);
	assert_true(mounts_find((struct text){(char *)mounts.data, mounts.len}, st.st_dev, &m));
	assert_true(calibration_of(&m, &v));
	assert_int_equal(kind_in_agent(f, 0x6969, "/proc", &figures), FSKIND_UNKNOWN);
	assert_string_equal(figures, "");
	v.right = true;
	strcpy(v.way, "all");
	assert_int_equal(calibration_put(&b, &v), 0);
	write_file(path, &b, 0600);
	assert_int_equal(kind_in_agent(f, 0x6969, "/proc", &figures), FSKIND_CALIBRATED);
	assert_string_equal(figures, "charged 0 of 0 MiB (all)");
	assert_int_equal(kind_in_agent(f, 0x65735546, "/proc", &figures), FSKIND_UNKNOWN);
	assert_int_equal(kind_in_agent(f, 0x6969, "/sys", &figures), FSKIND_UNKNOWN);
	write_file(path, &b, 0666);
	assert_int_equal(kind_in_agent(f, 0x6969, "/proc", &figures), FSKIND_UNKNOWN);
	assert_non_null(strstr(f->kinds.trouble, "can write to it"));
	v.right = false;
	assert_int_equal(calibration_put(&b, &v), 0);
	write_file(path, &b, 0600);
	assert_int_equal(kind_in_agent(f, 0xEF53, "/proc", &figures), FSKIND_UNKNOWN);
	unsetenv("CREMA_CALIBRATION");
	unlink(path);
	rmdir(dir);
	buf_release(&mounts);
	buf_release(&b);
}

/* An agent without a file, whose worker has read on /proc's file system, called NFS. */
static struct fskind_entry *begin_agent(struct fake *f, struct verdict *v)
{
	struct buf mounts = BUF_INIT;
	struct mount m;
	struct stat st;

	setenv("CREMA_CALIBRATION", "/nowhere/calibration", 1);
	assert_int_equal(procfs_slurp_all(&mounts, "/proc/self/mountinfo"), 0);
	assert_int_equal(stat("/proc", &st), 0);
	assert_true(mounts_find((struct text){(char *)mounts.data, mounts.len}, st.st_dev, &m));
	assert_true(calibration_of(&m, v));
	buf_release(&mounts);
	v->right = true;
	strcpy(v->way, "all");
	f->shm->filesystem[0] =
		(struct crema_filesystem){.state = 2, .f_type = 0x6969, .dev = st.st_dev};
	assert_true(fskinds_poll(&f->kinds, &f->view, getpid()));
	assert_int_equal(f->kinds.entry[0].kind, FSKIND_UNKNOWN);
	f->kinds.moved = 0;
	return &f->kinds.entry[0];
}

/* What the collector sends; v NULL: nothing. Returns whether that is news. */
static bool ship(struct fake *f, const struct verdict *v)
{
	struct buf b = BUF_INIT;

	if (v)
		assert_int_equal(calibration_put(&b, v), 0);
	fskinds_ship(&f->kinds, &b, 0);
	buf_release(&b);
	return fskinds_poll(&f->kinds, &f->view, getpid());
}

static void test_shipped(void **state)
{
	struct fake *f = *state;
	struct buf none = BUF_INIT;
	struct verdict v;
	struct fskind_entry *e = begin_agent(f, &v);

	/* It arrives when the file system has been decided. */
	assert_true(ship(f, &v));
	assert_int_equal(e->kind, FSKIND_CALIBRATED);
	assert_string_equal(e->figures, "charged 0 of 0 MiB (all)");
	assert_int_equal(f->kinds.moved, 1);
	f->kinds.moved = 0;
	assert_false(ship(f, &v)); /* as with each new connection */
	assert_int_equal(f->kinds.moved, 0);
	/* One that is damaged is ignored, with one line. */
	for (int i = 0; i < 2; i++) {
		fskinds_ship(&f->kinds, &none, -EBADMSG);
		assert_false(fskinds_poll(&f->kinds, &f->view, getpid()));
		assert_int_equal(e->kind, FSKIND_CALIBRATED);
		assert_string_equal(f->kinds.trouble,
				    i ? ""
				      : "the collector's calibration is ignored: it is damaged");
		f->kinds.trouble[0] = '\0';
	}
	/* New file systems, too. */
	f->shm->filesystem[1] = f->shm->filesystem[0];
	assert_true(fskinds_poll(&f->kinds, &f->view, getpid()));
	assert_int_equal(f->kinds.entry[1].kind, FSKIND_CALIBRATED);
	f->kinds.moved = 0;
	/* Other figures are news, but do not make records different. */
	v.needed_bytes = v.charged_bytes = 64 * MIB;
	assert_true(ship(f, &v));
	assert_int_equal(f->kinds.moved, 0);
	v.right = false;
	assert_true(ship(f, &v));
	assert_int_equal(e->kind, FSKIND_UNKNOWN);
	assert_true(e->figures[0]);
	assert_int_equal(f->kinds.moved, 3);
	assert_true(ship(f, NULL));
	assert_string_equal(e->figures, "");
	fskinds_release(&f->kinds);
}

/* By type, kernel and options, the file of this machine applies first; what is not in it is the
 * collector's. */
static void test_own_file_first(void **state)
{
	char dir[] = "/tmp/crema-test-XXXXXX", path[64];
	struct fake *f = *state;
	struct buf b = BUF_INIT;
	struct verdict v, other;
	struct fskind_entry *e = begin_agent(f, &v);

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/calibration", dir);
	setenv("CREMA_CALIBRATION", path, 1);
	for (int own = 0; own < 2; own++) {
		v.right = own;
		assert_int_equal(calibration_put(&b, &v), 0);
		write_file(path, &b, 0600);
		v.right = !own;
		assert_true(ship(f, &v));
		assert_int_equal(e->kind, own ? FSKIND_CALIBRATED : FSKIND_UNKNOWN);
		assert_true(e->figures[0]);
	}
	other = v;
	strcpy(other.kernel, "another");
	buf_release(&b);
	assert_int_equal(calibration_put(&b, &other), 0);
	write_file(path, &b, 0600);
	v.right = true;
	assert_false(ship(f, &v)); /* as the file before */
	assert_int_equal(e->kind, FSKIND_CALIBRATED);
	v.right = false;
	assert_true(ship(f, &v));
	assert_int_equal(e->kind, FSKIND_UNKNOWN);
	unlink(path);
	rmdir(dir);
	buf_release(&b);
	fskinds_release(&f->kinds);
}

/* What was counted on one mount is not proven by another one with its device number. */
static void test_another_mount(void **state)
{
	struct fake *f = *state;
	struct verdict v;
	struct fskind_entry *e = begin_agent(f, &v);

	e->options_crc++;
	assert_false(ship(f, &v));
	assert_int_equal(e->kind, FSKIND_UNKNOWN);
	e->options_crc--;
	ship(f, NULL);
	assert_true(ship(f, &v));
	assert_int_equal(e->kind, FSKIND_CALIBRATED);
	e->options_crc++; /* it has other options now: unknown, and remains so */
	fskinds_recheck(&f->kinds, &f->view, getpid());
	assert_int_equal(e->kind, FSKIND_UNKNOWN);
	assert_int_equal(e->options_crc, 0); /* even if the first mount comes back */
	assert_true(ship(f, NULL));
	assert_false(ship(f, &v));
	assert_int_equal(e->kind, FSKIND_UNKNOWN);
	fskinds_release(&f->kinds);
}

static struct way_result result(uint64_t charged, uint64_t needed, uint64_t fetched)
{
	return (struct way_result){
		.charged_bytes = charged, .needed_bytes = needed, .fetched_bytes = fetched};
}

static bool judged(struct way_result all, struct way_result a, struct way_result b, size_t n)
{
	ways_judge(&all, (struct way_result[]){a, b}, n);
	return all.right;
}

static void test_judgment(void **state)
{
	struct way_result none = result(0, 0, 0), device = result(10, 64, 64);

	(void)state;
	assert_true(judged(result(64, 64, 64), result(64, 64, 64), none, 1));
	assert_true(judged(result(96, 64, 96), result(96, 64, 96), none, 1)); /* read ahead */
	assert_false(judged(result(0, 64, 64), result(0, 64, 64), none, 1));
	assert_false(judged(result(128, 64, 64), result(128, 64, 64), none, 1));
	assert_false(judged(result(64, 64, 96), result(64, 64, 96), none, 1));
	/* Direct reads bypass the page cache: 0 = 0 proves nothing. */
	assert_false(judged(result(0, 64, 0), result(0, 64, 0), none, 1));
	assert_true(judged(none, none, none, 1)); /* a cached file */
	/* The right sum, charged to the wrong thread. */
	assert_true(judged(result(64, 64, 64), result(32, 32, 32), result(32, 32, 32), 2));
	assert_false(judged(result(64, 64, 64), result(64, 32, 32), result(0, 32, 32), 2));
	/* Compressed: compared with the device's count, which must match the file's. */
	device.has_device = true;
	device.device_bytes = 10;
	assert_true(judged(device, device, none, 1));
	device.device_bytes = 11;
	assert_false(judged(device, device, none, 1));
	device.charged_bytes = device.device_bytes = 0;
	assert_false(judged(device, device, none, 1));
	device.device_seen = true;
	assert_true(judged(device, device, none, 1));
}

static void test_cold(void **state)
{
	static const char folder[] = "/var/tmp"; /* /tmp may be memory */
	struct cold c;
	struct statfs fs;
	char name[FSKIND_NAME];
	void *map;

	(void)state;
	assert_int_equal(cold_size(0), 0);
	assert_int_equal(cold_size(16 * MIB - 1), 0);
	assert_int_equal(cold_size(17 * MIB + MIB / 2), 8 * MIB);
	assert_int_equal(cold_size(UINT64_MAX), 64 * MIB);
	if (statfs(folder, &fs) || fskind_of(fs.f_type, name) == FSKIND_NONE)
		skip();
	assert_int_equal(cold_open(&c, folder), 0);
	assert_true(cold_resident(&c, 0, c.size) > 0);
	assert_int_equal(cold_drop(&c), 0);
	assert_int_equal(cold_resident(&c, 0, c.size), 0);
	/* A mapped page stays cached, so the file is rewritten past the cache. */
	map = mmap(NULL, MIB, PROT_READ, MAP_SHARED, c.fd[1], 0);
	assert_true(map != MAP_FAILED);
	(void)*(volatile char *)map;
	assert_true(cold_resident(&c, 0, c.size) > 0);
	assert_int_equal(cold_drop(&c), 0);
	/* That does not help for a file that is only read. */
	(void)*(volatile char *)map;
	c.made = false;
	assert_int_equal(cold_drop(&c), -EBUSY);
	assert_non_null(strstr(c.why, "stay in the page cache"));
	munmap(map, MIB);
	cold_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_agent, setup, teardown),
		cmocka_unit_test(test_shipped_text),
		cmocka_unit_test_setup_teardown(test_shipped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_file_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_another_mount, setup, teardown),
		cmocka_unit_test(test_judgment),
		cmocka_unit_test(test_cold),
	};

	return cmocka_run_group_tests_name("calibration", tests, NULL, NULL);
}
