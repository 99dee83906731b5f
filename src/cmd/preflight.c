/* preflight.c - weft preflight: would a job run here? */
#include "train/preflight/preflight.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/measure.h"
#include "cmd/options.h"
#include "os/clock.h"

#define PINGS       50
#define TRANSFER_MS 120
#define STREAMS     4
#define BYTES_MAX   (1ull << 30)
#define DATAGRAMS   10000 /* of which a loss of a thousandth is seen */

static struct {
    const char *socket;
    const char *nodes;
    const char *state_dir;
    uint64_t expect_bps;
    bool plain;
    bool quick;
    bool force;
    bool json;
} arg;

static const struct option options[] = {
    {"--nodes", "NAMES", option_text, &arg.nodes, NULL,
        "only these members and this one, as a,b,c (default: all)"},
    {"--expect", "RATE", option_rate, &arg.expect_bps, NULL,
        "what every pair must move, such as 10Gbit"},
    {"--plain", NULL, option_flag, &arg.plain, NULL,
        "judge a job that is not started with weft run"},
    {"--quick", NULL, option_flag, &arg.quick, NULL,
        "do not measure throughput, nor loss but by a few pings"},
    {"--force", NULL, option_flag, &arg.force, NULL,
        "measure throughput although something uses the network"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT,
        "where what was measured is kept, for weft run"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "preflight",
    .summary = "Say whether a training job would run on this network's members, pair by pair.",
    .options = options,
    .notes = "The NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY and GLOO_SOCKET_IFNAME of this command's\n"
             "environment are taken for the job's. Exit status: 0 it would run, 3 it would not,\n"
             "1 that could not be found out.",
};

static int print_report(
    const struct preflight_report *report, const struct preflight_input *in, nsec_t elapsed)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    json_t *json = preflight_encode(report, in, elapsed);

    if (json && !arg.nodes && !arg.quick && !in->skipped_bulk)
        measure_keep("preflight", arg.state_dir, json);
    if (!arg.json)
        preflight_format(report, in, elapsed, &out);
    return admin_print("preflight", arg.json, json, &out);
}

static int assess(struct measure *m)
{
    _cleanup_(preflight_report_deinit) struct preflight_report report = PREFLIGHT_REPORT_NULL;
    const struct preflight_input in = {.nodes = m->survey.nodes,
        .n_nodes = m->survey.n_nodes,
        .pairs = m->survey.pairs,
        .n_pairs = m->survey.n_pairs,
        .env = {.nccl_ifname = getenv("NCCL_SOCKET_IFNAME"),
            .nccl_family = getenv("NCCL_SOCKET_FAMILY"),
            .gloo_ifname = getenv("GLOO_SOCKET_IFNAME"),
            .keeps_host_name = arg.plain || geteuid() != 0,
            .plain = arg.plain},
        .own_fault = m->members.fault[0] ? m->members.fault : NULL,
        .hub_away = m->members.hub_away[0] ? m->members.hub_away : NULL,
        .expect_bps = arg.expect_bps,
        .skipped_bulk = m->survey.skipped_bulk,
        .is_quick = arg.quick};
    nsec_t elapsed = clock_now() - m->started_at;
    int status;

    if (preflight_assess(&report, &in) < 0)
        return cmd_fail("preflight", "no memory for the report");
    status = print_report(&report, &in, elapsed);
    if (status == CMD_OK && report.level == PREFLIGHT_NO)
        status = CMD_VERDICT_NO;
    return status;
}

int cmd_preflight(int argc, char **argv)
{
    struct measure m = {.members = MEMBERS_NULL, .survey = SURVEY_NULL};
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    m.plan.pings = PINGS;
    m.plan.ms = arg.quick ? 0 : TRANSFER_MS;
    m.plan.streams = STREAMS;
    m.plan.bytes = BYTES_MAX;
    m.plan.datagrams = arg.quick ? 0 : DATAGRAMS;
    m.plan.force = arg.force;
    status = measure_open(&m, "preflight", arg.socket, arg.nodes);
    if (status == CMD_OK && survey_run(&m.survey, &m.plan) < 0)
        status = cmd_fail("preflight", "no memory for %zu members", m.members.n);
    if (status == CMD_OK && m.plan.progress)
        (void)fprintf(stderr, "\r\033[K");
    if (status == CMD_OK) {
        /* A job on this node would have the limits of its starter, as this command has, and not
         * the agent's. */
        if (m.survey.nodes[0].present)
            facts_gather_limits(&m.survey.nodes[0].facts);
        status = assess(&m);
    }
    measure_close(&m);
    return status;
}
