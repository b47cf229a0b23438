/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - crema-agent: started by libcrema.so, one per worker process. */
#include "agent/agent.h"

int main(int argc, char **argv)
{
	return agent_main(argc, argv);
}
