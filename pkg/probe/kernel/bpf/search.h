/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * The quick question that is asked of every privileged program of the node: may
 * CNI_COMMAND be in its environment at all? Taking the environment apart, variable by
 * variable, costs a call of the kernel each (scan.h); here it is read in large pieces
 * and looked through in words, which takes half the time and says no to nearly all.
 */
#pragma once

#define WORD4(a, b, c, d) ((__u32)(a) | (__u32)(b) << 8 | (__u32)(c) << 16 | (__u32)(d) << 24)

/* Of every eight bytes the first four are looked at. Wherever the name lies, they are
 * once one of the eight words that begin in its first eight bytes, here those at an
 * even and those at an odd place. */
#define EVEN WORD4('C', 'N', 'I', '_'), WORD4('I', '_', 'C', 'O'), WORD4('C', 'O', 'M', 'M'), WORD4('M', 'M', 'A', 'N')
#define ODD WORD4('N', 'I', '_', 'C'), WORD4('_', 'C', 'O', 'M'), WORD4('O', 'M', 'M', 'A'), WORD4('M', 'A', 'N', 'D')

/* Few words have even the bits that the four have in common, so this costs one
 * comparison for four; and one that a CPU predicts well, whatever the text is. A binary
 * search, which compilers make of a switch, takes three times as long. */
#define ANY(a, b, c, d) ((a) | (b) | (c) | (d))
#define ALL(a, b, c, d) ((a) & (b) & (c) & (d))
#define SAME(a, b, c, d) (~(ANY(a, b, c, d) ^ ALL(a, b, c, d)))
#define EQUAL(w, a, b, c, d) ((w) == (a) || (w) == (b) || (w) == (c) || (w) == (d))
#define ONE_OF(w, four) (((w) & SAME(four)) == ALL(four) && EQUAL(w, four))

enum found { NOT_YET, MAYBE, NO };

/* Looks through the next piece. Pieces follow one another without a gap and have a
 * length that eight divides, so no word lies in two of them. A function of its own, and
 * global, for the verifier's sake, as scan_stretch in scan.h. */
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
