/* health.c - weft health: is this machine fit for work? If not, its scheduler is told. */
#include "agent/drain.h"

#include <string.h>

#include "agent/state/state.h"
#include "base/clock.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "os/interrupt.h"

static struct {
    const char *socket;
    const char *state_dir;
    const char *hook;
    nsec_t every;
    bool drain;
    bool json;
} arg;

static const struct option options[] = {
    {"--drain", NULL, option_flag, &arg.drain, NULL,
        "count this check; after three that fail in a row ask the hub, and call the hook"},
    {"--every", "DURATION", option_duration, &arg.every, NULL,
        "with --drain: make checks until a signal comes, one each so long", .min = NSEC_PER_SEC,
        .max = 86400 * NSEC_PER_SEC},
    {"--hook", "PATH", option_text, &arg.hook, DRAIN_HOOK_DEFAULT,
        "what tells the scheduler: an executable"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT, "of the node"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "health",
    .summary = "Check this machine: its fabric, network cards, GPUs, disk, clock and overlay.",
    .options = options,
    .notes =
        "The hook is called as HOOK drain|undrain NODE NETWORK REASON CODES. Nobody is drained\n"
        "unless weft network set NAME --drain-share PERCENT says how many nodes may be at once.\n"
        "Exit status: 0 it is well, 1 something is worse than it should be, 2 it has failed.",
};

/* What a check has shown, as an exit status. */
static int status_of(const struct drain_report *r)
{
    switch (fitness_worst(&r->fitness)) {
    case FITNESS_FAILED:
        return 2;
    case FITNESS_WARNED:
        return 1;
    case FITNESS_UNSEEN:
    case FITNESS_OK:
    case FITNESS_VERDICT_N:
        break;
    }
    return r->has_failed ? 1 : 0;
}

/* @is_brief: only if there is something to say. */
static int check(const struct drain_options *opt, bool is_brief, int *ret_verdict)
{
    _cleanup_(drain_report_deinit) struct drain_report report = {.done = ""};
    _cleanup_(str_deinit) struct str out = STR_NULL;

    if (drain_check(opt, &report) < 0)
        return cmd_fail("health", "no memory for the report");
    *ret_verdict = status_of(&report);
    if (is_brief && *ret_verdict == 0 && report.done[0] == '\0')
        return CMD_OK;
    if (!arg.json)
        drain_format(&report, &out);
    return admin_print("health", arg.json, drain_encode(&report), &out);
}

/* Where no service manager has a timer. */
static int check_again_and_again(const struct drain_options *opt)
{
    struct interrupt i;
    int verdict;
    int status;

    interrupt_begin(&i);
    do
        status = check(opt, true, &verdict);
    while (status == CMD_OK && !interrupt_wait(&i, (unsigned)(arg.every / NSEC_PER_MSEC)));
    interrupt_end(&i);
    return status;
}

int cmd_health(int argc, char **argv)
{
    struct drain_options opt = {.every_s = DRAIN_EVERY_S};
    int verdict = 0;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.every != 0 && !arg.drain)
        return cmd_refuse("health", "--every is for --drain: without it nothing is counted");
    opt.socket = arg.socket;
    opt.state_dir = arg.state_dir;
    opt.hook = arg.hook;
    opt.acts = arg.drain;
    if (arg.every != 0)
        opt.every_s = (uint32_t)(arg.every / NSEC_PER_SEC);
    if (arg.every != 0)
        return check_again_and_again(&opt);
    status = check(&opt, false, &verdict);
    return status == CMD_OK ? verdict : status;
}
