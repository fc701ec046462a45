/* Each thread publishes a span by OTEP 4947, or garbage, and runs a command; then it prints the command's PID. As an
 * agent (a path as argument) it does so for each connection. */
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t attributes;
} __attribute__((packed, aligned(2)));

static __thread char before[100] __attribute__((used)); /* so that the offset is no special one */
__thread struct record *volatile otel_thread_ctx_v1;
static __thread __attribute__((aligned(64))) char aligned[64] __attribute__((used));

extern char **environ;
static char *border; /* the last bytes before memory that cannot be read */

static void publish(struct record *r, int i)
{
	memset(r->trace, 0xa0 + i, sizeof(r->trace));
	memset(r->span, 0x10 + i, sizeof(r->span));
	r->valid = 1;
	r->flags = 3;
	otel_thread_ctx_v1 = r;
	switch (i % 8) {
	case 1: otel_thread_ctx_v1 = 0; break;
	case 2: otel_thread_ctx_v1 = (void *)0xdead000000000000; break;
	case 3: r->valid = 0; break;
	case 4: r->valid = 2; break;
	case 5: memset(r, 0, 24); break;
	case 6: memset(r->span, 0, 8); break;
	case 7: otel_thread_ctx_v1 = (void *)border; break;
	}
}

static void work(int i)
{
	struct record r = {.attributes = 65535};
	char *args[] = {"true", 0};
	pid_t pid;

	publish(&r, i);
	aligned[0] = before[0] = 1;
	if (posix_spawnp(&pid, "true", 0, 0, args, environ))
		exit(1);
	waitpid(pid, 0, 0);
	otel_thread_ctx_v1 = 0;
	printf("%d %d\n", i, pid);
	fflush(stdout);
}

static void *thread(void *i)
{
	work((long)i);
	return 0;
}

static int serve(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct record r = {.attributes = 0};
	int l = socket(AF_UNIX, SOCK_STREAM, 0), c;

	strncpy(a.sun_path, path, sizeof(a.sun_path) - 1);
	if (bind(l, (void *)&a, sizeof(a)) || listen(l, 8))
		return 1;
	while ((c = accept(l, 0, 0)) >= 0) {
		work(0);
		publish(&r, 8);
		if (write(c, "x", 1) != 1)
			return 1;
		otel_thread_ctx_v1 = 0;
		close(c);
	}
	return 1;
}

int main(int argc, char **argv)
{
	enum { THREADS = 32 };
	pthread_t all[THREADS];
	long page = sysconf(_SC_PAGESIZE);
	char *two = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(two + page, page, PROT_NONE);
	border = two + page - 20;
	if (argc > 1)
		return serve(argv[1]);
	getchar(); /* it is known by then */
	for (long i = 0; i < THREADS; i++)
		pthread_create(&all[i], 0, thread, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], 0);
	return 0;
}
