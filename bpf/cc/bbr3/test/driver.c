// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs bbr3.h and inflight_ring.h as an ordinary program, for tests. Each line of standard input is a command and its
 * arguments (unsigned decimal numbers); a line is printed for each that has a result:
 *
 *   NAME ARGUMENTS...       calls a function of fixed_point.h, named without the prefix bbr3_. Prints its result
 *   filter                  resets the maximum filter of bandwidth
 *   sample BW LIMITED       adds a sample, which is app-limited if LIMITED is 1. Prints the maximum
 *   cycle                   ends a cycle of PROBE_BW. Prints the maximum
 *   ring                    resets the in-flight ring
 *   send AT INFLIGHT LOST LIMITED SENT SRTT   packets are about to be sent
 *   settle SENT SRTT        an ACK has arrived
 *   find AT                 prints in flight and lost of the entry for a packet sent at AT; "none" without an entry
 *   flow                    starts a connection with the input that `set` has set
 *   set NAME VALUE          sets a member of the input of this and the following ACKs
 *   ack                     handles an ACK. Prints the state
 *   rto, restart, recovery, undo   handle these events
 *   show NAME               prints a member of state or output
 */
#include "../bbr3.h"
#include "../inflight_ring.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ARGUMENTS 6

static struct bbr3 flow;
static struct bbr3_ack input;
static struct bbr3_ring ring;
static struct bbr3_call call;
static unsigned long long arguments[MAX_ARGUMENTS];

static const char *const states[] = {"STARTUP", "DRAIN", "DOWN", "CRUISE", "REFILL", "UP", "PROBE_RTT"};

static int print(unsigned long long value)
{
	printf("%llu\n", value);
	return 1;
}

/* Runs a function of fixed_point.h. */
static int arithmetic(const char *name)
{
	unsigned long long *a = arguments;

#define FUNCTION(function, ...)                                                                                        \
	if (!strcmp(name, #function))                                                                                  \
		return print(bbr3_##function(__VA_ARGS__));
	FUNCTION(scale, a[0], a[1])
	FUNCTION(delivery_rate, a[0], a[1])
	FUNCTION(bdp, a[0], a[1], a[2])
	FUNCTION(delivered_in, a[0], a[1])
	FUNCTION(pacing_rate, a[0], a[1], a[2])
	FUNCTION(burst, a[0], a[1], a[2], a[3])
	FUNCTION(is_loss_too_high, a[0], a[1])
	FUNCTION(inflight_at_loss, a[0], a[1], a[2])
	FUNCTION(with_headroom, a[0])
	FUNCTION(acked_per_increment, a[0], a[1])
	FUNCTION(ce_ratio, a[0], a[1])
	FUNCTION(ecn_alpha, a[0], a[1])
	FUNCTION(log2, a[0])
	FUNCTION(random, a[0])
	FUNCTION(random_below, a[0], a[1])
	FUNCTION(probe_wait_us, a[0])
	FUNCTION(probe_rounds, a[0])
	return 0;
}

static int filter(const char *name)
{
	if (!strcmp(name, "filter"))
		memset(&flow, 0, sizeof(flow));
	else if (!strcmp(name, "sample"))
		bbr3_update_max_bw(&flow, arguments[0], arguments[1]), print(bbr3_max_bw(&flow));
	else if (!strcmp(name, "cycle"))
		bbr3_advance_max_bw(&flow), print(bbr3_max_bw(&flow));
	else
		return 0;
	return 1;
}

static void settle(unsigned sent, unsigned srtt_us)
{
	if (bbr3_ring_is_due(&call, sent))
		bbr3_ring_settle(&ring, &call, sent, srtt_us, call.is_app_limited);
}

static int in_flight(const char *name)
{
	unsigned long long *a = arguments;

	if (!strcmp(name, "ring")) {
		memset(&ring, 0, sizeof(ring));
		memset(&call, 0, sizeof(call));
	} else if (!strcmp(name, "send")) {
		struct bbr3_moment now = {a[0], a[1], a[2], a[3]};

		settle(a[4], a[5]);
		if (!bbr3_ring_is_early(&call, a[0], a[5]))
			bbr3_ring_on_send(&call, &now, a[4], 0);
	} else if (!strcmp(name, "settle")) {
		settle(a[0], a[1]);
	} else if (!strcmp(name, "find")) {
		const struct bbr3_moment *found = bbr3_ring_find(&ring, a[0]);

		if (found)
			printf("%u %u\n", found->inflight, found->lost);
		else
			printf("none\n");
	} else {
		return 0;
	}
	return 1;
}

static int set(const char *name, unsigned long long value)
{
#define INPUT(member)                                                                                                  \
	if (!strcmp(name, #member)) {                                                                                  \
		input.member = value;                                                                                  \
		return 1;                                                                                              \
	}
	INPUT(now_us)
	INPUT(delivered_us)
	INPUT(pacing_delay_us)
	INPUT(srtt_us)
	INPUT(inflight)
	INPUT(delivered)
	INPUT(lost)
	INPUT(ca_state)
	INPUT(is_cwnd_limited)
	INPUT(interval_us)
	INPUT(sample_delivered)
	INPUT(prior_delivered)
	INPUT(prior_inflight)
	INPUT(acked)
	INPUT(losses)
	INPUT(rtt_us)
	INPUT(is_app_limited)
	INPUT(tx_in_flight)
	INPUT(tx_lost)
	INPUT(has_ecn)
	INPUT(delivered_ce)
	INPUT(sample_ce)
	INPUT(cwnd)
	return 0;
}

static int show(const char *name)
{
#define STATE(member)                                                                                                  \
	if (!strcmp(name, #member))                                                                                    \
		return print(flow.member);
#define OUTPUT(member)                                                                                                 \
	if (!strcmp(name, #member))                                                                                    \
		return print(input.member);
	STATE(inflight_longterm)
	STATE(inflight_shortterm)
	STATE(bw_shortterm)
	STATE(min_rtt_us)
	STATE(ecn_alpha)
	OUTPUT(cwnd)
	OUTPUT(pacing_rate)
	return 0;
}

static void begin(void)
{
	memset(&flow, 0, sizeof(flow));
	input.max_pacing_rate = 1000000000000;
	input.pacing_shift = 10;
	input.mss = 1448;
	input.cwnd_clamp = 1000000;
	bbr3_on_init(&flow, &input, input.rtt_us, 0, 1);
}

static int connection(const char *name)
{
	if (!strcmp(name, "flow")) {
		begin();
	} else if (!strcmp(name, "ack")) {
		bbr3_on_ack(&flow, &input);
		printf("%s\n", states[flow.state]);
	} else if (!strcmp(name, "rto")) {
		bbr3_on_ca_state(&flow, &input, BBR3_CA_LOSS);
	} else if (!strcmp(name, "restart")) {
		bbr3_on_restart(&flow, &input);
	} else if (!strcmp(name, "recovery")) {
		bbr3_on_recovery(&flow, &input);
	} else if (!strcmp(name, "undo")) {
		input.cwnd = bbr3_on_undo(&flow);
	} else {
		return 0;
	}
	return 1;
}

int main(void)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		char *name = strtok(line, " \n"), *word = strtok(NULL, " \n"), *member = word;
		unsigned number = 0;
		int is_known;

		if (!name)
			continue;
		memset(arguments, 0, sizeof(arguments));
		is_known = !strcmp(name, "show") && word && show(word);
		if (!strcmp(name, "set"))
			word = strtok(NULL, " \n");
		for (; word && number < MAX_ARGUMENTS; word = strtok(NULL, " \n"))
			arguments[number++] = strtoull(word, NULL, 10);
		is_known = is_known || (!strcmp(name, "set") && member && set(member, arguments[0]));
		if (!is_known && !arithmetic(name) && !filter(name) && !in_flight(name) && !connection(name)) {
			fprintf(stderr, "unknown command %s\n", name);
			return 1;
		}
	}
	return 0;
}
