/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Agents' writes and reads of streams. No kernel function is specific to them, so system calls
 * are traced while an agent is followed. */
#pragma once

static __always_inline bool talks(__u8 class)
{
	return writes(class) || class == CLASS_READ || class == CLASS_READV || class == CLASS_RECVFROM || class == CLASS_RECVMSG;
}

static __always_inline void speaks(struct pt_regs *regs, struct call *c)
{
	struct process *p = bpf_map_lookup_elem(&processes, &c->tgid);

	if (!p || !p->agent || compat(current_task()))
		return;
	c->start = bpf_ktime_get_ns();
	read_args(regs, true, c->args);
	keep(c);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long nr)
{
	struct call c = {.tgid = bpf_get_current_pid_tgid() >> 32, .nr = nr, .class = class_at(nr)};

	if (!talks(c.class) || may_be_tracked(c.tgid) < TALKS)
		return 0;
	hold();
	speaks(regs, &c);
	let_go();
	return 0;
}

/* Netlink answers and slow requests were reported before, when the call ended. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_return, struct pt_regs *regs, long ret)
{
	struct task_struct *task;
	struct process *p;
	struct call c;

	if (!talks(class_at(number_in(regs, true))) || may_be_ours() < TALKS)
		return 0;
	task = current_task();
	hold();
	p = take(&c);
	if (p && p->agent) {
		exit_stream(task, p, &c, ret);
		lasted(task, p, &c, ret);
	}
	let_go();
	return 0;
}
