// SPDX-License-Identifier: GPL-2.0
/*
 * What bdp adds to a user-mode Linux on the kernel's side.
 *
 * /proc/bdp_clock: to be mapped, one page, to be read only. It begins with the time since boot in nanoseconds, in 8 bytes. To read it
 * takes neither a system call nor time of the guest: it is for a program that does not wait for it to move on. The next 8 bytes are 1
 * where the same time stands behind each packet that is read from a TUN device: in the 8 bytes that follow those which the read counts, if
 * it has room for them.
 *
 * /proc/bdp_system_calls: what all programs have asked of the kernel
 * since boot. The first line is the number of system calls. Each further line is how often, the number of the call (-1: a page
 * fault), and the name of the thread. A system call of a guest costs the machine as much as a hundred of its own.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uio.h>

/* Threads of more names than there is room for are counted in the last place. */
#define PLACES 1024

static unsigned long system_calls;
static struct {
	unsigned long count;
	int number;
	char thread[TASK_COMM_LEN];
} calls[PLACES + 1];

/* Not while another counts: a guest has one processor, and is not preempted. */
void bdp_count_call(int number)
{
	const char *thread = current->comm;
	unsigned int place = number * 31;
	int i;

	for (i = 0; i < TASK_COMM_LEN && thread[i]; i++)
		place = place * 31 + thread[i];
	place %= PLACES;
	if (number >= 0)
		system_calls++;
	for (i = 0; i < 16; i++, place = (place + 1) % PLACES) {
		if (!calls[place].count) {
			calls[place].number = number;
			strscpy(calls[place].thread, thread, TASK_COMM_LEN);
		} else if (calls[place].number != number || strncmp(calls[place].thread, thread, TASK_COMM_LEN)) {
			continue;
		}
		calls[place].count++;
		return;
	}
	calls[PLACES].count++;
}

static int show(struct seq_file *to, void *unused)
{
	int i;

	seq_printf(to, "%lu\n", system_calls);
	for (i = 0; i <= PLACES; i++)
		if (calls[i].count)
			seq_printf(to, "%lu %d %s\n", calls[i].count, calls[i].number, calls[i].thread);
	return 0;
}

static u64 *now;

/* Whenever the clock moves. */
void bdp_clock_is(unsigned long long ns)
{
	if (now)
		WRITE_ONCE(*now, ns);
}

/* Of a packet, as it is read. */
void bdp_stamp(struct iov_iter *to)
{
	if (now)
		copy_to_iter(now, sizeof(*now), to);
}

static int map_clock(struct file *file, struct vm_area_struct *area)
{
	if (!now || area->vm_pgoff || vma_pages(area) != 1 || (area->vm_flags & (VM_WRITE | VM_EXEC)))
		return -EINVAL;
	return vm_insert_page(area, area->vm_start, virt_to_page(now));
}

static const struct proc_ops clock_operations = {
	.proc_mmap = map_clock,
};

static int __init make_files(void)
{
	now = (u64 *) get_zeroed_page(GFP_KERNEL);
	if (now) {
		now[1] = 1;
		proc_create("bdp_clock", 0444, NULL, &clock_operations);
	}
	proc_create_single("bdp_system_calls", 0444, NULL, show);
	return 0;
}
fs_initcall(make_files);
