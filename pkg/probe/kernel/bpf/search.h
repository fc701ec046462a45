/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The first test of every privileged program: may its environment have CNI_COMMAND? Parsing
 * variables costs a kernel call each (scan.h). This reads large pieces and compares words, in
 * half the time, and excludes nearly all programs. */
#pragma once

#define WORD4(a, b, c, d) ((__u32)(a) | (__u32)(b) << 8 | (__u32)(c) << 16 | (__u32)(d) << 24)

/* It compares the first four of every eight bytes. Wherever the name lies, they are one of the
 * eight words in its first eight bytes, here those at even and odd places. */
#define EVEN WORD4('C', 'N', 'I', '_'), WORD4('I', '_', 'C', 'O'), WORD4('C', 'O', 'M', 'M'), WORD4('M', 'M', 'A', 'N')
#define ODD WORD4('N', 'I', '_', 'C'), WORD4('_', 'C', 'O', 'M'), WORD4('O', 'M', 'M', 'A'), WORD4('M', 'A', 'N', 'D')

/* Few words have the bits that the four words have in common, so this costs one comparison for
 * four, and a well-predicted one. A binary search, as compilers make of a switch, takes three
 * times as long. */
#define ANY(a, b, c, d) ((a) | (b) | (c) | (d))
#define ALL(a, b, c, d) ((a) & (b) & (c) & (d))
#define SAME(a, b, c, d) (~(ANY(a, b, c, d) ^ ALL(a, b, c, d)))
#define EQUAL(w, a, b, c, d) ((w) == (a) || (w) == (b) || (w) == (c) || (w) == (d))
#define ONE_OF(w, four) (((w) & SAME(four)) == ALL(four) && EQUAL(w, four))

enum found { NOT_YET, MAYBE, NO };

/* Searches the next piece. Pieces are adjacent, with a length divisible by eight, so no word is
 * split. Global for the verifier's sake, as scan_stretch in scan.h. */
__noinline int search_piece(void)
{
	__u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);
	__u64 n;

	if (!s || s->at >= s->end)
		return NO;
	n = s->end - s->at;
	if (n > PIECE)
		n = PIECE;
	if (bpf_probe_read_user(s->event.data, n, (void *)s->at))
		return NO;
	s->at += n;
	for (__u64 i = 0; i < n; i += 8) {
		__u64 w = *(__u32 *)__builtin_assume_aligned(&s->event.data[i], 8);

		if (ONE_OF(w, EVEN) || ONE_OF(w, ODD))
			return MAYBE;
	}
	return NOT_YET;
}

static __always_inline bool may_be_plugin(struct task_struct *task, struct scratch *s)
{
	struct mm_struct *mm = task->mm;
	int found = NOT_YET;

	s->at = READ(mm, env_start);
	s->end = READ(mm, env_end);
	for (int i = 0; i < PIECES_MAX && found == NOT_YET; i++)
		found = search_piece();
	if (found != MAYBE && s->at < s->end)
		lose(CUT_ENV, 0);
	return found == MAYBE;
}
