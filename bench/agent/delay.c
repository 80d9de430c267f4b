/*
 * Relays packets with a delay between two interfaces of its network namespace, for bench/tuning.py, which therefore
 * also runs on kernels without netem.
 *
 *     delay FIRST SECOND MICROSECONDS      relays packets in both directions with this delay; prints "ready"; runs
 *                                          until it is killed
 *
 * If packets arrive faster than an interface sends them, the relay's socket buffer fills, and further packets are
 * dropped, as by a full queue.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Maximum packet size, and capacity of the queue of each direction in packets, which must be a power of two. */
#define LONGEST 1600
#define ROOM (1 << 15)

struct packet {
	uint64_t due_ns;
	uint32_t length;
	char bytes[LONGEST];
};

struct way {
	int from;
	int to;
	uint64_t first;
	uint64_t next;
	struct packet *packets;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int opened(const char *name)
{
	int file = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL)), size = 32 << 20, yes = 1;
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(name),
	};

	if (file < 0 || !address.sll_ifindex || bind(file, (const void *)&address, sizeof(address)))
		fail(name);
	/* Ignores outgoing packets, such as those of this program. */
	if (setsockopt(file, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)))
		fail("PACKET_IGNORE_OUTGOING");
	setsockopt(file, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	return file;
}

static void take(struct way *way, uint64_t delay_ns)
{
	while (way->next - way->first < ROOM) {
		struct packet *packet = &way->packets[way->next & (ROOM - 1)];
		ssize_t length = recv(way->from, packet->bytes, LONGEST, MSG_TRUNC);

		if (length <= 0)
			return;
		if (length > LONGEST)
			continue;
		packet->length = (uint32_t)length;
		packet->due_ns = now_ns() + delay_ns;
		way->next++;
	}
}

/* Sends the packets that are due. Returns the time at which the next one is due; 0 if the queue is empty. */
static uint64_t give(struct way *way)
{
	while (way->first != way->next) {
		struct packet *packet = &way->packets[way->first & (ROOM - 1)];

		if (packet->due_ns > now_ns())
			return packet->due_ns;
		/* If the socket buffer is full, send() fails and the packet is dropped. */
		send(way->to, packet->bytes, packet->length, 0);
		way->first++;
	}
	return 0;
}

int main(int count, char **words)
{
	struct way ways[2];
	uint64_t delay_ns;
	int files[2];

	if (count != 4) {
		fprintf(stderr, "delay FIRST SECOND MICROSECONDS\n");
		return 2;
	}
	delay_ns = strtoull(words[3], NULL, 10) * 1000;
	for (int end = 0; end < 2; end++)
		files[end] = opened(words[1 + end]);
	for (int way = 0; way < 2; way++) {
		ways[way] = (struct way){ .from = files[way], .to = files[!way] };
		ways[way].packets = malloc(ROOM * sizeof(struct packet));
		if (!ways[way].packets)
			fail("memory");
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct pollfd waited[2] = { { files[0], POLLIN, 0 }, { files[1], POLLIN, 0 } };
		uint64_t next = 0, now;
		struct timespec wait;

		for (int way = 0; way < 2; way++) {
			uint64_t due;

			take(&ways[way], delay_ns);
			due = give(&ways[way]);
			if (due && (!next || due < next))
				next = due;
		}
		now = now_ns();
		wait.tv_sec = next ? 0 : 1;
		wait.tv_nsec = next ? (next > now ? (long)(next - now) : 0) : 0;
		if (ppoll(waited, 2, &wait, NULL) < 0 && errno != EINTR)
			fail("ppoll");
	}
}
