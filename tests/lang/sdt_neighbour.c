// SPDX-License-Identifier: BSD-2-Clause
/*
 * Linked into user.c's program beside libtickmark: an object with a USDT note of another provider, as the
 * common probe headers make it. Its base symbol and the library's must become one.
 */
void neighbour_probe(void);

void neighbour_probe(void)
{
	__asm__ volatile(
		"990:	nop\n"
		"	.pushsection .note.stapsdt, \"\", %note\n"
		"	.balign 4\n"
		"	.4byte 992f - 991f, 994f - 993f, 3\n"
		"991:	.asciz \"stapsdt\"\n"
		"992:	.balign 4\n"
		"993:	.8byte 990b\n"
		"	.8byte _.stapsdt.base\n"
		"	.8byte 0\n"
		"	.asciz \"neighbour\"\n"
		"	.asciz \"probe\"\n"
		"	.asciz \"\"\n"
		"994:	.balign 4\n"
		"	.popsection\n"
		"	.ifndef _.stapsdt.base\n"
		"	.pushsection .stapsdt.base, \"aG\", %progbits, .stapsdt.base, comdat\n"
		"	.weak _.stapsdt.base\n"
		"	.hidden _.stapsdt.base\n"
		"_.stapsdt.base: .space 1\n"
		"	.size _.stapsdt.base, 1\n"
		"	.popsection\n"
		"	.endif\n");
}
