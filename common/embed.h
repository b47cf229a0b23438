/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * embed.h - embeds a file's contents at compile time, as the text name[] with a NUL at name_end.
 */
#ifndef CREMA_COMMON_EMBED_H
#define CREMA_COMMON_EMBED_H

/* clang-format off */
#define EMBED(name, file)                        \
	__asm__(".section .rodata\n"             \
		".global " #name "\n"            \
		".global " #name "_end\n"        \
		#name ":\n"                      \
		".incbin \"" file "\"\n"         \
		#name "_end:\n"                  \
		".byte 0\n"                      \
		".previous\n");                  \
	extern const char name[], name##_end[];
/* clang-format on */

#endif
