// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs tuned.h as an ordinary program, for tests. Reads lines: "wordN VALUE" sets the parameter with this number;
 * "NAME VALUE" sets a member of the input for this and the following calls; "begin" starts a connection; "ack" and
 * "event" run the decisions. Each of these calls prints NAME VALUE pairs.
 */
#include "../tuned.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct tuned_params params;
static struct tuned_state state;
static struct tuned_ack in;
static unsigned ticks;

static void step(void)
{
	struct tuned_output out = {0};
	unsigned is_expired = tuned_is_min_rtt_expired(&state, &params, in.clock);
	unsigned is_due = tuned_is_probe_rtt_due(&state, in.clock);

	if (in.is_round_start)
		ticks += tuned_tick(&state, &params, in.now_us);
	tuned_step(&state, &params, &in, &out);
	printf("pacing_rate %llu cwnd %u pacing_gain %u cwnd_gain %u cycle_idx %u rtt_cnt %u inflight_bound %llu "
	       "min_rtt_stamp %llu probe_rtt_done_stamp %llu is_expired %u is_due %u\n",
	       (unsigned long long)out.pacing_rate, out.cwnd, out.pacing_gain, out.cwnd_gain, state.phase, ticks,
	       (unsigned long long)(state.bound >> TUNED_BOUND_SHIFT), (unsigned long long)state.min_rtt_at,
	       (unsigned long long)state.probe_rtt_done_at, is_expired, is_due);
}

int main(void)
{
	char line[128];

	while (fgets(line, sizeof(line), stdin)) {
		char *name = strtok(line, " \n"), *value = strtok(NULL, " \n");
		unsigned long long number = value ? strtoull(value, NULL, 10) : 0;

		if (!name)
			continue;
		if (!strncmp(name, "word", 4)) {
			unsigned long index = strtoul(name + 4, NULL, 10);

			if (index >= sizeof(params) / sizeof(uint32_t))
				return 1;
			((uint32_t *)&params)[index] = number;
		} else if (!strcmp(name, "begin")) {
			memset(&state, 0, sizeof(state));
			ticks = 0;
			tuned_begin(&state, &params, &in);
			printf("pacing_rate %llu\n", (unsigned long long)tuned_initial_rate(&params, &in));
		} else if (!strcmp(name, "ack")) {
			step();
		} else if (!strcmp(name, "event")) {
			unsigned is_due = tuned_is_probe_rtt_due(&state, in.clock);

			tuned_event(&state, &params, &in);
			printf("cycle_idx %u min_rtt_stamp %llu is_due %u\n", state.phase,
			       (unsigned long long)state.min_rtt_at, is_due);
		}
#define MEMBER(member)                                                                                                 \
	else if (!strcmp(name, #member)) in.member = number
		MEMBER(before.mode);
		MEMBER(before.min_rtt_us);
		MEMBER(before.is_policed);
		MEMBER(before.prior_ca_state);
		MEMBER(before.has_seen_rtt);
		MEMBER(after.mode);
		MEMBER(after.min_rtt_us);
		MEMBER(after.is_policed);
		MEMBER(after.prior_ca_state);
		MEMBER(after.has_seen_rtt);
		MEMBER(now_us);
		MEMBER(clock);
		MEMBER(departure_us);
		MEMBER(mss);
		MEMBER(srtt_us);
		MEMBER(cwnd);
		MEMBER(cwnd_clamp);
		MEMBER(inflight);
		MEMBER(prior_inflight);
		MEMBER(acked);
		MEMBER(losses);
		MEMBER(rtt_us);
		MEMBER(delivered);
		MEMBER(lost);
		MEMBER(ca_state);
		MEMBER(pacing_shift);
		MEMBER(pacing_rate);
		MEMBER(max_pacing_rate);
		MEMBER(random[0]);
		MEMBER(random[1]);
		MEMBER(bw);
		MEMBER(max_bw);
		MEMBER(is_round_start);
		MEMBER(is_pipe_full);
		MEMBER(is_conserving);
		MEMBER(extra_acked);
		MEMBER(prior_cwnd);
		MEMBER(is_min_rtt_fresh);
		else {
			fprintf(stderr, "no member %s\n", name);
			return 1;
		}
	}
	return 0;
}
