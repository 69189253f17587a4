/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The body of a marker function, and the note that tells tools where it is.
 *
 * A body is `nop1; nop5; nop10; ret` on x86-64: which of the nops a tracer attaches to is its own choice
 * (the cheapest way differs between kernels), and other tools use the first, which the note names. It
 * does not begin with endbr64, which the kernel would have to single-step, and it is out of line: where
 * the kernel turns a nop into a call, the word that it pushes lands in a red zone that is dead. It lies
 * inside one 32-byte block, so no nop crosses a cache line. On arm64 all three are plain nops.
 */
#ifndef TICKMARK_MARKER_ASM_H
#define TICKMARK_MARKER_ASM_H

#include <stdint.h>

#if defined(__x86_64__)
#define TMK_MARKER_BODY                                                       \
	"	.byte 0x90\n"                                                       \
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                               \
	"	.byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00\n" \
	"	ret\n"
/* Where the nops lie in the body: the places that a tracer may attach to. */
#define TMK_MARKER_NOPS \
	{               \
		0, 1, 6 \
	}
#define TMK_MARKER_ARGS_2 "8@%rdi 8@%rsi"
#define TMK_MARKER_ARGS_5 TMK_MARKER_ARGS_2 " 8@%rdx 8@%rcx 8@%r8"
#define TMK_MARKER_ARGS_6 TMK_MARKER_ARGS_5 " 8@%r9"
#elif defined(__aarch64__)
#define TMK_MARKER_BODY "	nop\n	nop\n	nop\n	ret\n"
#define TMK_MARKER_NOPS \
	{               \
		0, 4, 8 \
	}
#define TMK_MARKER_ARGS_2 "8@x0 8@x1"
#define TMK_MARKER_ARGS_5 TMK_MARKER_ARGS_2 " 8@x2 8@x3 8@x4"
#define TMK_MARKER_ARGS_6 TMK_MARKER_ARGS_5 " 8@x5"
#else
#error "libtickmark knows x86-64 and arm64"
#endif

#define TMK_MARKER_FUNCTION(name)                                   \
	"	.pushsection .text\n"                                     \
	"	.p2align 5\n"                                             \
	"	.globl " #name "\n"                                 \
	"	.hidden " #name "\n"                                \
	"	.type " #name ", %function\n" #name ":\n"           \
	"	.cfi_startproc\n" TMK_MARKER_BODY "	.cfi_endproc\n" \
	"	.size " #name ", . - " #name "\n"                   \
	"	.popsection\n"

/* Version 3 of the note: address, base, semaphore, provider, name, arguments. */
#define TMK_MARKER_NOTE(name, mark, semaphore, args)                              \
	"	.pushsection .note.stapsdt, \"\", %note\n"                              \
	"	.balign 4\n"                                                            \
	"	.4byte 2f - 1f, 4f - 3f, 3\n"                                           \
	"1:	.asciz \"stapsdt\"\n"                                                 \
	"2:	.balign 4\n"                                                          \
	"3:	.8byte " #name "\n"                                               \
	"	.8byte _.stapsdt.base\n"                                                \
	"	.8byte " #semaphore "\n"                                          \
	"	.asciz \"tickmark\"\n"                                                  \
	"	.asciz \"" #mark "\"\n"                                           \
	"	.asciz \"" args "\"\n"                                            \
	"4:	.balign 4\n"                                                          \
	"	.popsection\n"                                                          \
	"	.ifndef _.stapsdt.base\n"                                               \
	"	.pushsection .stapsdt.base, \"aG\", %progbits, .stapsdt.base, comdat\n" \
	"	.weak _.stapsdt.base\n"                                                 \
	"	.hidden _.stapsdt.base\n"                                               \
	"_.stapsdt.base:\n"                                                       \
	"	.space 1\n"                                                             \
	"	.size _.stapsdt.base, 1\n"                                              \
	"	.popsection\n"                                                          \
	"	.endif\n"

#define TMK_MARKER_DECLARE(name)                                                     \
	extern void name(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) \
		__attribute__((visibility("hidden")))

/* Defines marker `mark` as function `name`, with its note. At file scope. */
#define TMK_MARKER(name, mark, semaphore, args) \
	TMK_MARKER_DECLARE(name);               \
	__asm__(TMK_MARKER_FUNCTION(name) TMK_MARKER_NOTE(name, mark, semaphore, args))

/* The same body without a note: nobody finds it. */
#define TMK_MARKER_PRIVATE(name)  \
	TMK_MARKER_DECLARE(name); \
	__asm__(TMK_MARKER_FUNCTION(name))

#endif /* TICKMARK_MARKER_ASM_H */
