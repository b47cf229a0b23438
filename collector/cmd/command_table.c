/* SPDX-License-Identifier: BSD-3-Clause */
/* command_table.c - all subcommands of crema: main(), --help and the man pages use it. */
#include "collector/cmd/command.h"

#include <stddef.h>

const struct command *const command_table[] = {&cmd_collect, &cmd_report, &cmd_compare, &cmd_run,
					       &cmd_token,   &cmd_top,	  &cmd_stuck,	&cmd_doctor,
					       &cmd_follow,  &cmd_page,	  NULL};
