// SPDX-License-Identifier: GPL-2.0
/*
 * What bdp adds to a user-mode Linux so that two boots of it do the same. Nothing here knows of TCP.
 *
 * - bdp_seed=HEX: all randomness of the guest follows from it, none from the host.
 * - The process has no randomised addresses where the host allows that, and the same start of its heap where it
 *   does not: how much memory the guest has depends on it.
 * - The guest's memory is a memfd: neither /dev/shm nor a folder for temporary files limits it.
 *
 * Copied to arch/um/os-Linux/ by stacks/linux/build; the patches call it. Code of the host's side: it sees libc.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif
#include <init.h>
#include <os.h>
#include <registers.h>

static int seeded;
static uint64_t state;

/* FNV-1a, so that a seed may be any word. */
static int __init set_seed(char *line, int *add)
{
	state = 0xcbf29ce484222325ULL;
	for (; *line != '\0'; line++)
		state = (state ^ (unsigned char) *line) * 0x100000001b3ULL;
	seeded = 1;
	*add = 0;
	return 0;
}

__uml_setup("bdp_seed=", set_seed,
"bdp_seed=<word>\n"
"    All randomness of the guest follows from this word: two boots draw the\n"
"    same, and nothing is taken from the host.\n\n"
);

/* SplitMix64: Steele, Lea, Flood, Fast Splittable Pseudorandom Number Generators, 2014. */
static uint64_t next_random(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Fills buf from the seed; returns 0 where there is none. */
int os_seeded_random(void *buf, size_t len)
{
	unsigned char *to = buf;

	if (!seeded)
		return 0;
	while (len > 0) {
		uint64_t word = next_random();
		size_t some = len < sizeof(word) ? len : sizeof(word);

		memcpy(to, &word, some);
		to += some;
		len -= some;
	}
	return 1;
}

/*
 * The end of the heap. With randomised addresses it lies up to 1 GiB behind the program, and the guest's memory begins
 * behind it: it is moved to where it can always be.
 */
unsigned long os_brk_start(void)
{
	extern char _end[];
	const unsigned long step = 4UL << 20;
	unsigned long end = (unsigned long) _end, now = (unsigned long) sbrk(0);
	unsigned long fixed = (end + (1UL << 30) + 2 * step) & ~(step - 1);

	if (now - end > step && now < fixed && brk((void *) fixed) == 0)
		return fixed;
	return now;
}

int os_memory_file(void)
{
	return memfd_create("guest", MFD_CLOEXEC);
}

/*
 * Before main. libc gives each process a place that the host writes to whenever it moves it to another processor. The programs
 * of the guest (6.1, 6.12) are forks of this process that have unmapped that place: the host would kill them.
 */
static void __attribute__((constructor)) leave_rseq(void)
{
#ifdef RSEQ_SIG
	syscall(SYS_rseq, (char *) __builtin_thread_pointer() + __rseq_offset, 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
#endif
}

/* Before main: addresses as they are without randomisation. Where the host refuses, everything stays as it is. */
static void __attribute__((constructor)) fix_addresses(int argc, char **argv, char **envp)
{
	static char path[4096];
	ssize_t length;
	int old = personality(0xffffffff);

	if (old < 0 || (old & ADDR_NO_RANDOMIZE) || personality(old | ADDR_NO_RANDOMIZE) < 0)
		return;
	/* Refused without a word by what filters system calls: this must not be tried for ever. */
	old = personality(0xffffffff);
	if (old < 0 || !(old & ADDR_NO_RANDOMIZE))
		return;
	length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (length < 0)
		return;
	path[length] = '\0';
	execve(path, argv, envp);
}

/*
 * Sets the registers of a set that the host takes whole or not at all. Linux 6.1 keeps the first 2,696 bytes of those that XSAVE
 * knows, and a host with AMX has 11,008: the rest is of programs that asked for AMX, which none in a guest can.
 */
long os_set_registers(int pid, unsigned long set, const struct iovec *kept)
{
	static unsigned char whole[65536];
	static size_t size;
	struct iovec iov = { .iov_base = whole, .iov_len = sizeof(whole) };

	if (size == 0) {
		if (ptrace(PTRACE_GETREGSET, pid, set, &iov) < 0)
			return -1;
		size = iov.iov_len;
		memset(whole, 0, sizeof(whole));
	}
	if (kept->iov_len >= size)
		return ptrace(PTRACE_SETREGSET, pid, set, kept);
	memcpy(whole, kept->iov_base, kept->iov_len);
	iov.iov_len = size;
	return ptrace(PTRACE_SETREGSET, pid, set, &iov);
}

/*
 * Floating-point registers of the guest's programs, as they were last seen in the process that each runs in. To write them is a
 * quarter of what a system call of the guest costs, and what would be written is mostly what is there.
 */
#define SEEN 64
static struct {
	int pid;
	unsigned char registers[12288];
} seen[SEEN];

int os_put_fp(int pid, unsigned long *fp, size_t size)
{
	if (seen[pid % SEEN].pid == pid && memcmp(seen[pid % SEEN].registers, fp, size) == 0)
		return 0;
	return put_fp_registers(pid, fp);
}

int os_get_fp(int pid, unsigned long *fp, size_t size)
{
	int failed = get_fp_registers(pid, fp);

	if (failed || size > sizeof(seen[0].registers)) {
		seen[pid % SEEN].pid = 0;
		return failed;
	}
	seen[pid % SEEN].pid = pid;
	memcpy(seen[pid % SEEN].registers, fp, size);
	return 0;
}

/* Where something else ran in the process: a fault is reported by a signal's handler, which begins with registers of its own. */
void os_forget_fp(int pid)
{
	seen[pid % SEEN].pid = 0;
}

/* What a new process is traced with: it ends with its tracer. Another may have had its number. */
long os_trace_options(int pid)
{
	os_forget_fp(pid);
	return PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL;
}
