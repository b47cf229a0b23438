/* SPDX-License-Identifier: BSD-3-Clause */
/* socket_owner.c - one query to the kernel's socket tables. */
#include "common/socket_owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define SECOND_NS 1000000000u

/* An address as both ways need it: always with the bytes of its own family. */
struct place {
	int family;
	uint32_t word[4]; /* network order */
	uint16_t port;	  /* network order */
};

static struct place place_of(const struct sockaddr *address)
{
	struct place p = {.family = address ? address->sa_family : AF_UNSPEC};

	if (p.family == AF_INET) {
		const struct sockaddr_in *in = (const void *)address;

		p.word[0] = in->sin_addr.s_addr;
		p.port = in->sin_port;
	} else if (p.family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)address;

		memcpy(p.word, &in6->sin6_addr, sizeof(p.word));
		p.port = in6->sin6_port;
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
			p = (struct place){AF_INET, {p.word[3]}, p.port};
	}
	return p;
}

bool socket_is_loopback(const struct sockaddr *address)
{
	static const struct in6_addr one = IN6ADDR_LOOPBACK_INIT;
	struct place p = place_of(address);

	if (p.family == AF_INET)
		return ntohl(p.word[0]) >> 24 == 127;
	return p.family == AF_INET6 && !memcmp(p.word, &one, sizeof(one));
}

static int receive(int fd, bool listening, uid_t *uid)
{
	struct {
		struct nlmsghdr head;
		union {
			struct inet_diag_msg socket;
			struct nlmsgerr error;
		} u;
		char attributes[4096];
	} answer;
	ssize_t n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);

	if (n < (ssize_t)(sizeof(answer.head) + sizeof(answer.u.error.error)))
		return n < 0 ? -errno : -EIO;
	if (answer.head.nlmsg_type == NLMSG_ERROR)
		return answer.u.error.error ? answer.u.error.error : -EIO;
	if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    n < (ssize_t)(sizeof(answer.head) + sizeof(answer.u.socket)))
		return -EIO;
	/* If there is no such connection the kernel returns the listener; a socket without a
	 * process has no inode, and its user would be 0. */
	if ((answer.u.socket.idiag_state == TCP_LISTEN) != listening ||
	    !answer.u.socket.idiag_inode)
		return -ENOENT;
	*uid = answer.u.socket.idiag_uid;
	return 0;
}

static int ask(const struct place *local, const struct place *remote, uid_t *uid)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 question;
	} message = {
		.head = {.nlmsg_len = sizeof(message),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.question = {.sdiag_family = (uint8_t)local->family,
			     .sdiag_protocol = IPPROTO_TCP,
			     .idiag_states = ~0u,
			     .id = {.idiag_sport = local->port,
				    .idiag_dport = remote->port,
				    .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};
	int rc, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -errno;
	memcpy(message.question.id.idiag_src, local->word, sizeof(local->word));
	memcpy(message.question.id.idiag_dst, remote->word, sizeof(remote->word));
	rc = send(fd, &message, sizeof(message), 0) < 0
		     ? -errno
		     : receive(fd, remote->family == AF_UNSPEC, uid);
	close(fd);
	return rc;
}

/* As in the table: each word in this machine's byte order. */
static void write_place(char *out, size_t size, const struct place *p, int words, bool mapped)
{
	uint32_t word[4] = {p->word[0], p->word[1], p->word[2], p->word[3]};
	int n = 0;

	if (mapped) {
		word[2] = p->family == AF_UNSPEC ? 0 : htonl(0xffff);
		word[3] = p->word[0];
		word[0] = word[1] = 0;
	}
	for (int i = 0; i < words; i++)
		n += snprintf(out + n, size - (size_t)n, "%08X", word[i]);
	snprintf(out + n, size - (size_t)n, ":%04X", ntohs(p->port));
}

static int search(const char *table, const char *local, const char *remote, uid_t *uid)
{
	char line[512], from[64], to[64];
	unsigned int state, owner;
	unsigned long inode;
	FILE *file = fopen(table, "re");
	int rc = file ? -ENOENT : -errno;

	while (file && rc && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %63s %63s %x %*s %*s %*s %u %*s %lu", from, to, &state,
			   &owner, &inode) != 5 ||
		    strcmp(from, local) || !inode)
			continue;
		if (remote ? strcmp(to, remote) : state != TCP_LISTEN)
			continue;
		*uid = owner;
		rc = 0;
	}
	if (file)
		fclose(file);
	return rc;
}

/* Under its own address, and if a listener has all of them, under that. */
static int search_both(const char *table, const struct place *local, const struct place *remote,
		       int words, bool mapped, uid_t *uid)
{
	struct place any = {.port = local->port};
	char ours[64], theirs[64];
	int rc;

	write_place(ours, sizeof(ours), local, words, mapped);
	write_place(theirs, sizeof(theirs), remote, words, mapped);
	rc = search(table, ours, remote->family == AF_UNSPEC ? NULL : theirs, uid);
	if (rc != -ENOENT || remote->family != AF_UNSPEC)
		return rc;
	write_place(ours, sizeof(ours), &any, words, mapped);
	return search(table, ours, NULL, uid);
}

static bool too_often(void)
{
	static uint64_t second;
	static unsigned int reads;
	uint64_t now = clock_mono_ns() / SECOND_NS;

	if (now != second) {
		second = now;
		reads = 0;
	}
	return reads++ >= OWNER_READS;
}

int socket_owner_read(const struct sockaddr *local, const struct sockaddr *remote, uid_t *uid)
{
	struct place ours = place_of(local), theirs = place_of(remote);
	int rc = -ENOENT;

	if (too_often())
		return -EAGAIN;
	if (ours.family == AF_INET)
		rc = search_both("/proc/self/net/tcp", &ours, &theirs, 1, false, uid);
	if (rc == -ENOENT)
		rc = search_both("/proc/self/net/tcp6", &ours, &theirs, 4, ours.family == AF_INET,
				 uid);
	return rc;
}

int socket_owner(const struct sockaddr *local, const struct sockaddr *remote, uid_t *uid)
{
	struct place ours = place_of(local), theirs = place_of(remote);
	int rc;

	if (ours.family == AF_UNSPEC || (remote && theirs.family != ours.family))
		return -EAFNOSUPPORT;
	rc = ask(&ours, &theirs, uid);
	return !rc || rc == -ENOENT ? rc : socket_owner_read(local, remote, uid);
}
