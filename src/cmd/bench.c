/* bench.c - weft bench: how fast is the mesh, pair by pair and together? */
#include "train/survey/bench.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/measure.h"
#include "cmd/options.h"
#include "measure/session.h"
#include "mesh/object/daily.h"
#include "mesh/object/traffic.h"
#include "os/clock.h"
#include "os/file.h"
#include "train/survey/sweep.h"

#define PINGS     200
#define PINGS_FEW 50 /* of a sample */
#define MATRIX_MS 300
#define PAIR_MS   2000
#define MIB       (1u << 20)
#define SVG_MODE  0644

#define ASK_TIMEOUT_MS 10000

static struct {
    const char *socket;
    const char *nodes;
    const char *peer;
    const char *svg;
    const char *state_dir;
    uint64_t expect_bps;
    uint64_t streams;
    uint64_t ms;
    uint64_t mib;
    uint64_t allreduce_mib;
    const char *nccl_tests;
    bool sweep;
    bool no_underlay;
    bool history;
    bool one_by_one;
    bool sample;
    bool uplink;
    bool force;
    bool json;
} arg;

static const struct option options[] = {
    {"PEER", NULL, option_name, &arg.peer, NULL, "measure this node with it (default: all pairs)"},
    {"--nodes", "NAMES", option_text, &arg.nodes, NULL,
        "all pairs of these members and this one, as a,b,c"},
    {"--expect", "RATE", option_rate, &arg.expect_bps, NULL,
        "what every direction must reach, such as 10Gbit; exit status 3 if one does not"},
    {"--streams", "N", option_u64, &arg.streams, "4", "of the second measurement of each pair",
        .min = 1, .max = ORDER_STREAMS_MAX},
    {"--ms", "N", option_u64, &arg.ms, NULL,
        "of each transfer, or longer where eight round trips are (default 300, for a single pair "
        "2000)",
        .min = 10, .max = 10000},
    {"--mib", "N", option_u64, &arg.mib, "8192", "of each transfer, at most", .min = 1,
        .max = ORDER_BYTES_MAX / MIB},
    {"--allreduce", "MIB", option_u64, &arg.allreduce_mib, "16",
        "size of the all-reduces' vector; 0: none", .max = ORDER_VECTOR_MAX / MIB},
    {"--sweep", NULL, option_flag, &arg.sweep, NULL,
        "all-reduces of 8 bytes to 1 GiB as well, and whether they are as fast as these machines "
        "are: by nccl-tests where GPUs are, else over TCP; exit status 3 if they are not"},
    {"--nccl-tests", "COMMAND", option_text, &arg.nccl_tests, NULL,
        "all_reduce_perf of nccl-tests, or a command with blanks that runs it, such as one in a "
        "container (default: as found in PATH)"},
    {"--no-underlay", NULL, option_flag, &arg.no_underlay, NULL,
        "do not measure the same beside the overlay"},
    {"--one-by-one", NULL, option_flag, &arg.one_by_one, NULL,
        "measure the throughput of one pair at a time, where pairs share a line"},
    {"--sample", NULL, option_flag, &arg.sample, NULL,
        "with PEER: short bursts of UDP alone, beside the tunnel, in it and with TLS inside, which "
        "the hub keeps as this day's"},
    {"--uplink", NULL, option_flag, &arg.uplink, NULL,
        "with PEER: short trains of UDP alone, beside the tunnel, by which the agent finds what "
        "this node's uplink carries"},
    {"--svg", "FILE", option_text, &arg.svg, NULL, "draw the matrix"},
    {"--history", NULL, option_flag, &arg.history, NULL,
        "print what earlier benchmarks of this node found, and measure nothing"},
    {"--force", NULL, option_flag, &arg.force, NULL, "measure although something uses the network"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT, "where the history is kept"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "bench",
    .summary = "Measure throughput, latency and all-reduce over the overlay.",
    .options = options,
    .notes =
        "It fills the members' lines for as long as it takes, so it refuses to run where a job\n"
        "does. Exit status: 0, 3 where --expect or --sweep says no, 1 when nothing was measured,\n"
        "or when nccl-tests failed.",
};

static int print_history(void)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct err e = ERR_NULL;
    json_t *json = NULL;
    int r = arg.json ? bench_history_encode(arg.state_dir, &json, &e)
                     : bench_history_format(arg.state_dir, &out, &e);

    if (r < 0)
        return cmd_fail("bench", "%s", err_text(&e));
    return admin_print("bench", arg.json, json, &out);
}

/* Adds the run to the history and draws the picture. The figures have been printed by now, whether
 * these can be written or not. */
static int keep(const struct bench *b)
{
    _cleanup_(str_deinit) struct str svg = STR_NULL;
    json_auto_t *summary = bench_summarise(b);
    struct err e = ERR_NULL;
    int r = bench_history_add(arg.state_dir, summary, &e);

    if (r < 0)
        (void)cmd_fail("bench", "this run is not remembered: %s", err_text(&e));
    if (!arg.svg)
        return CMD_OK;
    heatmap_draw(b, &svg);
    if (svg.failed || statefile_replace(arg.svg, str_text(&svg), svg.len, SVG_MODE, &e) < 0)
        return cmd_fail("bench", "the picture is not written: %s", err_text(&e));
    return CMD_OK;
}

static int report(struct measure *m, struct bench *b)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    json_auto_t *json = NULL;
    int status;
    int kept;

    b->streams = (uint32_t)arg.streams;
    b->expect_bps = arg.expect_bps;
    b->elapsed = clock_now() - m->started_at;
    b->measured_at = clock_wall();
    b->network = m->members.network;
    if (!arg.json)
        bench_format(b, &out);
    status = admin_print("bench", arg.json, arg.json ? bench_encode(b) : NULL, &out);
    /* Then it is no run of the history, and earlier measurements stay what advice is made of. */
    if (status == CMD_OK && bench_is_empty(b))
        return cmd_fail("bench", "nothing was measured");
    kept = keep(b);
    /* What was measured between all members is for the advice of weft run. */
    json = arg.nodes ? NULL : bench_encode(b);
    if (json)
        measure_keep("bench", arg.state_dir, json);
    if (status == CMD_OK)
        status = kept;
    if (status == CMD_OK && (bench_failures(b) > 0 || b->sweep.verdict == VERDICT_FAIL))
        status = CMD_VERDICT_NO;
    return status;
}

/* Asked before the measuring, which takes long, and not only after it. */
static int check_svg(void)
{
    _cleanup_(freep) char *copy = arg.svg ? strdup(arg.svg) : NULL;

    if (!copy || access(dirname(copy), W_OK | X_OK) == 0)
        return CMD_OK;
    return cmd_fail("bench", "the picture \"%s\" cannot be written: %s", arg.svg, strerror(errno));
}

/* Measuring would slow a training job down: refuses when one seems to run. */
static int refuse_live(const struct measure *m)
{
    for (size_t i = 0; i < m->survey.n_nodes; i++) {
        const struct facts *f = &m->survey.nodes[i].facts;
        char rate[32];

        if (f->jobs > 0)
            return cmd_fail("bench",
                "%s has a job of weft run, which this would slow down; "
                "--force measures all the same",
                m->survey.nodes[i].name);
        if (f->traffic >= PREFLIGHT_LIVE_RATE)
            return cmd_fail("bench",
                "%s pass over the overlay of %s, perhaps a job's, which this "
                "would slow down; --force measures all the same",
                bench_format_rate(f->traffic, rate), m->survey.nodes[i].name);
    }
    return CMD_OK;
}

/* bit/s between the slowest pair, in its slower direction; 0: some pair was not measured. */
static double slowest(const struct bench *b)
{
    uint64_t least = UINT64_MAX;

    for (size_t from = 0; from < b->n_nodes; from++)
        for (size_t to = 0; to < b->n_nodes; to++)
            if (from != to && bench_rate(b, from, to) < least)
                least = bench_rate(b, from, to);
    return least == UINT64_MAX ? 0 : (double)least;
}

static void clear_progress(const struct measure *m)
{
    if (m->plan.progress)
        (void)fprintf(stderr, "\r\033[K");
}

/* By nccl-tests where this machine has GPUs and the program is there, or where it was named. */
static int sweep(struct measure *m, struct bench *b)
{
    const struct member *self = &m->members.items[0];
    const struct fabric_report *machine = self->has_fabric ? &self->fabric : NULL;
    struct err e = ERR_NULL;

    if (!arg.nccl_tests && (!machine || machine->n_gpus == 0 || !sweep_nccl_find())) {
        bench_sweep(&m->survey, &b->sweep);
        sweep_assess(&b->sweep, machine, slowest(b));
        return CMD_OK;
    }
    if (sweep_nccl_run(arg.nccl_tests, arg.socket, &m->members, &b->sweep, &e) != 0) {
        clear_progress(m);
        return cmd_fail("bench", "%s", err_text(&e));
    }
    sweep_assess(&b->sweep, machine, 0);
    return CMD_OK;
}

static int measure_all(struct measure *m)
{
    struct bench b = {.nodes = m->survey.nodes,
        .n_nodes = m->survey.n_nodes,
        .pairs = m->survey.pairs,
        .n_pairs = m->survey.n_pairs};
    int status = CMD_OK;
    int reported;
    _cleanup_(freep) struct bench_pair *more = calloc(m->survey.n_pairs + 1, sizeof(*more));

    if (!more || survey_run(&m->survey, &m->plan) < 0 ||
        bench_run(
            &m->survey, &m->plan, !arg.no_underlay, arg.allreduce_mib * MIB, more, b.allreduce) < 0)
        return cmd_fail("bench", "no memory for %zu members", m->members.n);
    b.more = more;
    if (arg.sweep)
        status = sweep(m, &b);
    clear_progress(m);
    /* What was measured before a sweep that failed has taken minutes, and is right. */
    reported = report(m, &b);
    return status == CMD_OK ? reported : status;
}

/* What was measured is told to the agent, and by that to the hub. */
static int tell_daily(const struct measure *m, const struct bench_pair *p)
{
    const struct daily_sample s = bench_daily(p, traffic_day(clock_wall_s()));
    json_auto_t *body = json_pack(
        "{s:s, s:o}", "peer", m->survey.nodes[1].name, "sample", daily_sample_encode_short(&s));
    struct err e = ERR_NULL;

    if (!body || agent_ask_with(
                     arg.socket, "POST", "/v1/measure/daily", body, ASK_TIMEOUT_MS, NULL, &e) != 0)
        return cmd_fail("bench", "the agent does not take what was measured: %s", err_text(&e));
    return CMD_OK;
}

static int take_sample(struct measure *m)
{
    struct bench_pair more = {.has_both = false};
    struct bench b = {.nodes = m->survey.nodes,
        .n_nodes = m->survey.n_nodes,
        .pairs = m->survey.pairs,
        .n_pairs = m->survey.n_pairs,
        .more = &more,
        .streams = 1,
        .network = m->members.network,
        .measured_at = clock_wall()};
    _cleanup_(str_deinit) struct str out = STR_NULL;
    int status;

    if (m->survey.n_pairs != 1 || survey_run(&m->survey, &m->plan) < 0 ||
        bench_sample(&m->survey, &m->plan, &more) < 0)
        return cmd_fail("bench", "no memory for two members");
    b.elapsed = clock_now() - m->started_at;
    clear_progress(m);
    if (more.bursts[0].bits_per_s == 0 && more.bursts[1].bits_per_s == 0)
        return cmd_fail("bench", "nothing was measured: %s",
            m->survey.nodes[1].why[0] ? m->survey.nodes[1].why
                                      : "no burst arrived, or an agent is of an earlier version");
    if (!arg.json)
        bench_format(&b, &out);
    status = admin_print("bench", arg.json, arg.json ? bench_encode(&b) : NULL, &out);
    return status == CMD_OK ? tell_daily(m, &more) : status;
}

/* What the agent has found of this node's uplink so far, bit/s; 0: nothing. */
static uint64_t known_uplink(void)
{
    json_auto_t *status = NULL;
    json_int_t found = 0;

    if (agent_ask(arg.socket, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) == 0)
        (void)json_unpack(status, "{s:{s:{s:I}}}", "self", "uplink", "bitsPerSecond", &found);
    return found > 0 ? (uint64_t)found : 0;
}

static int tell_uplink(const char *peer, const struct train_plan *p)
{
    json_auto_t *body = json_pack("{s:s, s:I, s:b}", "peer", peer, "bitsPerSecond",
        (json_int_t)p->bits_per_s, "isLine", (int)p->is_line);
    struct err e = ERR_NULL;

    if (!body || agent_ask_with(
                     arg.socket, "POST", "/v1/measure/uplink", body, ASK_TIMEOUT_MS, NULL, &e) != 0)
        return cmd_fail("bench", "the agent does not take what was measured: %s", err_text(&e));
    return CMD_OK;
}

/* Trains to the only peer. */
static int find_uplink(struct measure *m)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    const char *peer = m->survey.nodes[1].name;
    struct bench_trains found;
    char rate[32];
    int status;

    if (m->survey.n_pairs != 1 || bench_trains(&m->survey, known_uplink(), &found) < 0)
        return cmd_fail("bench", "no memory for two members");
    clear_progress(m);
    if (found.why[0])
        return cmd_fail("bench", "nothing was measured: %s", found.why);
    str_addf(&out, "the line to %s carries %s%s, by %u train%s\n", peer,
        found.plan.is_line ? "" : "at least ", bench_format_rate(found.plan.bits_per_s, rate),
        found.plan.n, found.plan.n == 1 ? "" : "s");
    status = admin_print("bench", arg.json,
        json_pack("{s:s, s:I, s:b, s:i}", "peer", peer, "bitsPerSecond",
            (json_int_t)found.plan.bits_per_s, "isLine", (int)found.plan.is_line, "trains",
            (int)found.plan.n),
        &out);
    return status == CMD_OK ? tell_uplink(peer, &found.plan) : status;
}

int cmd_bench(int argc, char **argv)
{
    struct measure m = {.members = MEMBERS_NULL, .survey = SURVEY_NULL};
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.history)
        return print_history();
    if (arg.peer && arg.nodes)
        return cmd_refuse("bench", "PEER and --nodes are two ways to say the same");
    if (arg.nccl_tests && !arg.sweep)
        return cmd_refuse("bench", "--nccl-tests is for --sweep");
    if (arg.sample && (!arg.peer || arg.sweep || arg.expect_bps || arg.svg || arg.uplink))
        return cmd_refuse("bench", "--sample goes with PEER, and with none of --sweep, --expect, "
                                   "--svg, --uplink");
    if (arg.uplink && (!arg.peer || arg.sweep || arg.expect_bps || arg.svg))
        return cmd_refuse("bench", "--uplink goes with PEER, and with none of --sweep, --expect, "
                                   "--svg");
    if (arg.peer)
        arg.nodes = arg.peer;
    m.plan = (struct survey_plan){.pings = arg.sample ? PINGS_FEW : PINGS,
        .ms = arg.sample ? 0
              : arg.ms   ? (uint32_t)arg.ms
              : arg.peer ? PAIR_MS
                         : MATRIX_MS,
        .streams = (uint32_t)arg.streams,
        .bytes = arg.mib * MIB,
        .purpose = arg.uplink ? SESSION_IN_BACKGROUND : NULL,
        .force = arg.force,
        .alone = arg.one_by_one};
    status = check_svg();
    if (status == CMD_OK)
        status = measure_open(&m, "bench", arg.socket, arg.nodes);
    if (status == CMD_OK && !arg.force)
        status = refuse_live(&m);
    if (status == CMD_OK)
        status = arg.uplink ? find_uplink(&m) : arg.sample ? take_sample(&m) : measure_all(&m);
    measure_close(&m);
    return status;
}
