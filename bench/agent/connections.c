/*
 * Short connections, as many as there is time for, and connections that stay open: what bench/recording.py measures a recorder on.
 *
 *     connections serve ADDRESS PORT           answers each request with RESPONSE_BYTES and closes
 *     connections ask ADDRESS PORT SECONDS     one request after the other; prints how many were answered
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

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
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

static void ask(const struct sockaddr_in *address, double seconds)
{
	double end = now() + seconds;
	long answered = 0;

	while (now() < end) {
		int connection = connect_to(address);
		ssize_t received, all = 0;

		if (write(connection, buffer, REQUEST_BYTES) < 0)
			fail("write");
		while ((received = read(connection, buffer, sizeof(buffer))) > 0)
			all += received;
		if (all != RESPONSE_BYTES)
			fail("answer");
		close(connection);
		answered++;
	}
	printf("%ld\n", answered);
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
	else if (count > 4 && !strcmp(words[1], "hold"))
		hold(&address, atoi(words[4]));
	else
		return 2;
	return 0;
}
