/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refuse.c - runs a program with some system calls refused by the kernel, as container filters do:
 *
 *	refuse ERRNO NUMBER[,NUMBER...] PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CALLS_MAX 32

int main(int argc, char **argv)
{
	struct sock_filter code[2 * CALLS_MAX + 2];
	struct sock_fprog program = {.filter = code};
	unsigned int refusal;
	char *word;

	if (argc < 4)
		return 2;
	refusal = SECCOMP_RET_ERRNO | (unsigned int)strtoul(argv[1], NULL, 10);
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							   offsetof(struct seccomp_data, nr));
	for (word = strtok(argv[2], ","); word && program.len < 2 * CALLS_MAX;
	     word = strtok(NULL, ",")) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)strtoul(word, NULL, 10), 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, refusal);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("refuse");
		return 2;
	}
	execv(argv[3], argv + 3);
	perror(argv[3]);
	return 2;
}
