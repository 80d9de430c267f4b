/*
 * Makes connections that each send a number of bytes from the client: the load of bench/tuning_guest.py.
 *
 *     pushes sink ADDRESS PORT                           receives from one connection after the other
 *     pushes push ADDRESS PORT COUNT BYTES PAUSE_MS      sends BYTES over each connection; prints its port, its
 *                                                        algorithm at the end, and the seconds until all data arrived
 *
 * It sets no socket options.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NAME_BYTES 16 /* TCP_CA_NAME_MAX */

static char buffer[1 << 16];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double now_s(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

static void sink(const struct sockaddr_in *address)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (listener < 0 || bind(listener, (const void *)address, sizeof(*address)) || listen(listener, 16))
		fail("listen");
	puts("ready");
	fflush(stdout);
	for (;;) {
		int connection = accept(listener, NULL, NULL);

		if (connection < 0)
			fail("accept");
		while (read(connection, buffer, sizeof(buffer)) > 0)
			;
		close(connection);
	}
}

static void push(const struct sockaddr_in *address, long bytes)
{
	struct sockaddr_in own;
	socklen_t own_size = sizeof(own), name_size = NAME_BYTES;
	char name[NAME_BYTES + 1] = "";
	double begin = now_s();
	int connection = socket(AF_INET, SOCK_STREAM, 0);

	if (connection < 0 || connect(connection, (const void *)address, sizeof(*address)))
		fail("connect");
	while (bytes > 0) {
		ssize_t sent = write(connection, buffer, bytes < (long)sizeof(buffer) ? bytes : (long)sizeof(buffer));

		if (sent < 0)
			fail("write");
		bytes -= sent;
	}
	shutdown(connection, SHUT_WR);
	/* The peer closes after it has received everything. */
	if (read(connection, buffer, 1) != 0 || getsockname(connection, (void *)&own, &own_size) ||
	    getsockopt(connection, IPPROTO_TCP, TCP_CONGESTION, name, &name_size))
		fail("end");
	printf("%d %s %.6f\n", ntohs(own.sin_port), name, now_s() - begin);
	fflush(stdout);
	close(connection);
}

int main(int count, char **words)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	if (count < 4 || inet_pton(AF_INET, words[2], &address.sin_addr) != 1)
		return 2;
	address.sin_port = htons(atoi(words[3]));
	if (!strcmp(words[1], "sink"))
		sink(&address);
	if (count < 7)
		return 2;
	for (int number = atoi(words[4]); number > 0; number--) {
		push(&address, atol(words[5]));
		usleep(1000 * atoi(words[6]));
	}
	return 0;
}
