/* verdict.c - see verdict.h. */
#include "train/survey/verdict.h"

#include <string.h>

#include "base/str.h"
#include "fabric/fabric.h"
#include "mesh/object/fabric_report.h"
#include "train/profile/nccl_log.h"

/* Share of what a machine's ports carry together that NCCL is expected to reach at the least: the
 * 35 of 50 GB/s of the row for p4d. */
#define FABRIC_SHARE 0.7

/* Share of a plain link's measured rate that an all-reduce by a ring is expected to reach. As much
 * goes the other way at the same time, which leaves 0.9 (SYNC_DUPLEX of plan/sync.h), and members
 * wait for each other after each part; half is what nothing but a fault explains. */
#define PLAIN_USUAL 0.9
#define PLAIN_LEAST 0.5

/* Below this share of what is the least, the fabric is taken to be off: TCP of the same machine, by
 * its ENA or host NIC, gives a tenth to a quarter. */
#define OFF_SHARE 0.3

/* The bandwidth is EC2's; the share of it is what operators look for, and what users report (the
 * issue: 57 GB/s on 2, 32 on 3 and 30 on 4 p4d with an NCCL of 2021; with two machines a tree gives
 * more than the link). */
#define P4D "EC2 User Guide: 400 Gbit/s, of which nccl-tests gets 35 to 45 GB/s; nccl issue 527"
#define P5  "EC2 User Guide: 3200 Gbit/s, of which nccl-tests gets about 350 GB/s"

static const struct {
    const char *machine;
    struct verdict_expectation expected;
} rows[] = {
    {"p4d.24xlarge", {35, 45, P4D}},
    {"p4de.24xlarge", {35, 45, P4D}},
    {"p5.48xlarge", {300, 350, P5}},
    {"p5e.48xlarge", {300, 350, P5}},
    {"p5en.48xlarge", {300, 350, P5}},
};

bool verdict_expect(struct verdict_expectation *ret, const struct fabric_report *machine)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (strcmp(machine->machine, rows[i].machine) == 0) {
            *ret = rows[i].expected;
            return true;
        }
    if (machine->gbit == 0 || !fabric_kind_is_fast(fabric_kind_parse(machine->kind)))
        return false;
    *ret = (struct verdict_expectation){.least = FABRIC_SHARE * machine->gbit / 8,
        .usual = machine->gbit / 8.0,
        .source = "the rates of its ports, of which 70 % are expected, as of a p4d"};
    return true;
}

struct verdict_expectation verdict_expect_plain(double rate)
{
    return (struct verdict_expectation){.least = PLAIN_LEAST * rate / 8e9,
        .usual = PLAIN_USUAL * rate / 8e9,
        .source = "the rate that was measured between the slowest pair"};
}

/* Does it look as if NCCL used TCP instead of the fabric? @ret_is_sure: NCCL has said so. */
static bool is_off(const struct verdict_expectation *expected, const struct fabric_report *machine,
    double busbw, const struct nccl_log *log, bool *ret_is_sure)
{
    if (!machine || !fabric_kind_is_fast(fabric_kind_parse(machine->kind)))
        return false;
    *ret_is_sure = log && log->network[0] != '\0';
    if (*ret_is_sure)
        return strcmp(log->network, "Socket") == 0;
    return busbw < OFF_SHARE * expected->least;
}

static const char *fabric_word(const struct fabric_report *machine)
{
    switch (fabric_kind_parse(machine->kind)) {
    case FABRIC_EFA:
        return "EFA";
    case FABRIC_INFINIBAND:
        return "InfiniBand";
    case FABRIC_ROCE:
        return "RoCE";
    case FABRIC_GCE_RDMA:
        return "GPUDirect-RDMA";
    case FABRIC_TCPXO:
        return "GPUDirect-TCPXO";
    case FABRIC_TCPX:
        return "GPUDirect-TCPX";
    case FABRIC_GVNIC:
    case FABRIC_ETHERNET:
    case FABRIC_KIND_N:
        break;
    }
    return "the fabric";
}

enum verdict verdict_judge(const struct verdict_expectation *expected,
    const struct fabric_report *machine, double busbw, const struct nccl_log *log, struct str *out)
{
    const char *type = machine && machine->machine[0] != '\0' ? machine->machine : "this network";
    bool is_sure = false;

    if (busbw <= 0) {
        str_add(out, "no verdict: nothing was measured");
        return VERDICT_NONE;
    }
    if (!expected) {
        str_addf(out, "no verdict: %.4g GB/s of bus bandwidth, and nobody says what %s should give",
            busbw, type);
        return VERDICT_NONE;
    }
    str_addf(out, "%s: %.4g GB/s of bus bandwidth, and %s gives about %.4g, %.4g at the least (%s)",
        busbw < expected->least ? "fail" : "pass", busbw, type, expected->usual, expected->least,
        expected->source);
    if (busbw >= expected->least)
        return VERDICT_PASS;
    if (is_off(expected, machine, busbw, log, &is_sure)) {
        str_addf(
            out, "; %s %s off, this is TCP", fabric_word(machine), is_sure ? "is" : "seems to be");
        if (log && log->cause[0] != '\0')
            str_addf(out, ": %s", log->cause);
    }
    return VERDICT_FAIL;
}
