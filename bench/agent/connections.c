/*
 * Short connections, as many as there is time for, and connections that stay open: what bench/recording.py measures a recorder on.
 *
 *     connections serve ADDRESS PORT           answers each request with RESPONSE_BYTES and closes
 *     connections ask ADDRESS PORT SECONDS     one request after the other; prints how many were answered
 *     connections turns ADDRESS PORT SECONDS PID PID
 *         asks the servers at PORT and PORT + 1, which are these processes, in turns: first, second, second, first, and so on;
 *         prints for each turn what it took of this process's CPU time, of the server's, and by the clock, in ns
 *     connections keep ADDRESS PORT            accepts, and keeps what comes open
 *     connections hold ADDRESS PORT COUNT      opens so many, says "open", and ends when standard input does
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_BYTES 200
#define RESPONSE_BYTES 4000

/* So many requests in a turn, some milliseconds: what else a machine does lasts for longer, and hits both. */
#define TURN 32

/* Each goes before the other as often as after it. */
static const int ORDER[] = { 0, 1, 1, 0 };
#define TURNS (sizeof(ORDER) / sizeof(ORDER[0]))

static char buffer[65536];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static struct sockaddr_in address_of(char **words)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(words[3])) };

	if (inet_pton(AF_INET, words[2], &address.sin_addr) != 1)
		fail(words[2]);
	return address;
}

static int listen_at(const struct sockaddr_in *address)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (listener < 0 || bind(listener, (const void *)address, sizeof(*address)) || listen(listener, 4096))
		fail("listen");
	return listener;
}

static int connect_to(const struct sockaddr_in *address)
{
	int connection = socket(AF_INET, SOCK_STREAM, 0);

	if (connection < 0 || connect(connection, (const void *)address, sizeof(*address)))
		fail("connect");
	return connection;
}

static long long now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void serve(int listener, int keeps)
{
	for (;;) {
		int connection = accept(listener, NULL, NULL);

		if (connection < 0)
			fail("accept");
		if (keeps)
			continue;
		if (read(connection, buffer, REQUEST_BYTES) > 0 && write(connection, buffer, RESPONSE_BYTES) < 0)
			fail("write");
		close(connection);
	}
}

static void ask_once(const struct sockaddr_in *address)
{
	int connection = connect_to(address);
	ssize_t received, all = 0;

	if (write(connection, buffer, REQUEST_BYTES) < 0)
		fail("write");
	while ((received = read(connection, buffer, sizeof(buffer))) > 0)
		all += received;
	if (all != RESPONSE_BYTES)
		fail("answer");
	close(connection);
}

static void ask(const struct sockaddr_in *address, double seconds)
{
	long long end_ns = now_ns(CLOCK_MONOTONIC) + (long long)(1e9 * seconds);
	long answered = 0;

	for (; now_ns(CLOCK_MONOTONIC) < end_ns; answered++)
		ask_once(address);
	printf("%ld\n", answered);
}

/* What was used until now. */
struct used {
	long long client_ns, server_ns, clock_ns;
};

static struct used used(clockid_t server)
{
	return (struct used){
		.client_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID),
		.server_ns = now_ns(server),
		.clock_ns = now_ns(CLOCK_MONOTONIC),
	};
}

static void ask_in_turns(const struct sockaddr_in *first, double seconds, char **processes)
{
	struct sockaddr_in both[2] = { *first, *first };
	long long end_ns = now_ns(CLOCK_MONOTONIC) + (long long)(1e9 * seconds);
	clockid_t servers[2];

	for (int which = 0; which < 2; which++)
		if (clock_getcpuclockid(atoi(processes[which]), &servers[which]))
			fail(processes[which]);
	both[1].sin_port = htons(ntohs(first->sin_port) + 1);
	while (now_ns(CLOCK_MONOTONIC) < end_ns) {
		for (size_t turn = 0; turn < TURNS; turn++) {
			int which = ORDER[turn];

			struct used before = used(servers[which]), after;

			for (int number = 0; number < TURN; number++)
				ask_once(&both[which]);
			after = used(servers[which]);
			printf("%lld %lld %lld\n", after.client_ns - before.client_ns, after.server_ns - before.server_ns,
			       after.clock_ns - before.clock_ns);
		}
	}
}

static void hold(const struct sockaddr_in *address, int count)
{
	for (int number = 0; number < count; number++)
		connect_to(address);
	puts("open");
	fflush(stdout);
	while (read(0, buffer, sizeof(buffer)) > 0)
		;
}

int main(int count, char **words)
{
	struct rlimit files;
	struct sockaddr_in address;

	if (count < 4)
		return 2;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	address = address_of(words);
	if (!strcmp(words[1], "serve") || !strcmp(words[1], "keep"))
		serve(listen_at(&address), words[1][0] == 'k');
	else if (count > 4 && !strcmp(words[1], "ask"))
		ask(&address, atof(words[4]));
	else if (count > 6 && !strcmp(words[1], "turns"))
		ask_in_turns(&address, atof(words[4]), words + 5);
	else if (count > 4 && !strcmp(words[1], "hold"))
		hold(&address, atoi(words[4]));
	else
		return 2;
	return 0;
}
