// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs rule.h as an ordinary program, for tests. Reads lines: "rule N VERSION" begins a connection, "NAME VALUE" sets a
 * member of the input for this and the following ACKs, "ack" runs the rule and prints its output as NAME VALUE pairs,
 * "sample DELIVERED INTERVAL" prints the interval that the rule returns for a rate sample.
 */
#include "../rule.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	struct rule_state state = {0};
	struct rule_input in = {0};
	const struct rule_version *version = &rule_version_1;
	unsigned rule = 0;
	char line[128];

	while (fgets(line, sizeof(line), stdin)) {
		char *name = strtok(line, " \n"), *value = strtok(NULL, " \n");
		long long number = value ? strtoll(value, NULL, 10) : 0;

		if (!name)
			continue;
		if (!strcmp(name, "rule")) {
			char *number_of_version = strtok(NULL, " \n");

			rule = number;
			version = number_of_version && *number_of_version == '3' ? &rule_version_3 : &rule_version_1;
			memset(&state, 0, sizeof(state));
			memset(&in, 0, sizeof(in));
		} else if (!strcmp(name, "ack")) {
			struct rule_output out = {0};

			rule_step(rule, version, &state, &in, &out);
			printf("pacing_rate_bytes_per_s %llu pacing_gain %u snd_cwnd %u is_startup_over %u full_bw_count %u is_min_rtt_fresh %u boosted %u\n",
			       (unsigned long long)out.pacing_rate_bytes_per_s, out.pacing_gain, out.snd_cwnd, out.is_startup_over,
			       out.full_bw_count, out.is_min_rtt_fresh, out.boosted);
		} else if (!strcmp(name, "sample")) {
			char *interval = strtok(NULL, " \n");

			printf("interval_us %llu\n",
			       (unsigned long long)rule_interval(rule, &state, in.now_us, in.min_rtt_us, number,
								 strtoull(interval ? interval : "0", NULL, 10)));
		}
#define MEMBER(member)                                                                                                 \
	else if (!strcmp(name, #member)) in.member = number
		MEMBER(now_us);
		MEMBER(departure_us);
		MEMBER(bytes_sent);
		MEMBER(inflight_bytes);
		MEMBER(mss);
		MEMBER(srtt_us);
		MEMBER(rtt_us);
		MEMBER(snd_cwnd);
		MEMBER(prior_cwnd);
		MEMBER(acked);
		MEMBER(inflight);
		MEMBER(prior_inflight);
		MEMBER(delivered);
		MEMBER(lost);
		MEMBER(ca_state);
		MEMBER(is_held_back);
		MEMBER(rate_app_limited);
		MEMBER(pacing_rate_bytes_per_s);
		MEMBER(max_pacing_rate_bytes_per_s);
		MEMBER(bw);
		MEMBER(min_rtt_us);
		MEMBER(mode);
		MEMBER(full_bw_count);
		MEMBER(inflight_bound);
		MEMBER(unbounded_cwnd);
		else {
			fprintf(stderr, "no member %s\n", name);
			return 1;
		}
	}
	return 0;
}
