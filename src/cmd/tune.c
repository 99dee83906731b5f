/* tune.c - weft tune: which of the kernel's settings hold the mesh back, and setting them. */
#include "tune/tune_machine.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent_ask.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/measure.h"
#include "cmd/options.h"

#define ASK_TIMEOUT_MS 10000
#define RTT_MS_MAX     10000

static struct {
    const char *socket;
    const char *state_dir;
    uint64_t rate_bps;
    uint64_t rtt_ms;
    bool apply;
    bool undo;
    bool json;
} arg;

static const struct option options[] = {
    {"--apply", NULL, option_flag, &arg.apply, NULL, "set them, now and at each boot; for root"},
    {"--undo", NULL, option_flag, &arg.undo, NULL, "set them as they were before --apply"},
    {"--rate", "RATE", option_rate, &arg.rate_bps, NULL,
        "of the line, such as 10Gbit; with --rtt, in place of what was measured"},
    {"--rtt", "MS", option_u64, &arg.rtt_ms, NULL, "round trip time of the line, milliseconds",
        .min = 1, .max = RTT_MS_MAX},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT,
        "has what was last measured; what was there before is kept in it"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "of the agent"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "tune",
    .summary = "Show which of the kernel's settings hold the mesh back on this machine.",
    .options = options,
    .notes =
        "Nothing is changed without --apply, and nothing is lowered. The rate and the RTT are\n"
        "those that weft preflight or weft bench has measured in the last seven days.",
};

/* ---- what is known of the lines -------------------------------------------------------------- */

/* The device by which datagrams come is one of those that are looked at. */
static void gather_merging(struct tune_facts *f, const json_t *self)
{
    bool is_there = false;

    tune_take_merging(f, self);
    for (size_t d = 0; d < f->n_devices; d++)
        is_there |= strcmp(f->devices[d].name, f->merging_device) == 0;
    if (!is_there && f->merging_device[0] != '\0')
        tune_gather_device(f, f->merging_device);
}

/* Without an agent, or a measurement, nothing is known. */
static void gather_measured(struct tune_facts *f)
{
    json_auto_t *measured = measure_kept(arg.state_dir);
    json_auto_t *status = NULL;
    const json_t *self;
    const char *engine;
    const char *own;

    if (agent_ask(arg.socket, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) != 0)
        return;
    self = json_object_get(status, "self");
    engine = json_string_value(json_object_get(self, "engine"));
    f->is_userspace = engine && strcmp(engine, "userspace") == 0;
    gather_merging(f, self);
    own = json_string_value(json_object_get(self, "name"));
    if (own && measured)
        tune_take_measured(f, measured, own);
}

static void gather(struct tune_facts *f)
{
    tune_gather(f);
    gather_measured(f);
    if (arg.rate_bps == 0)
        return;
    f->rate_bps = (double)arg.rate_bps;
    f->rtt_s = (double)arg.rtt_ms / 1e3;
    (void)snprintf(f->source, sizeof(f->source), "as --rate and --rtt say");
}

/* ---- what is done ---------------------------------------------------------------------------- */

static int undo(void)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    struct tune_saved saved;
    struct err e = ERR_NULL;
    json_t *json;

    if (tune_undo(&saved, arg.state_dir, TUNE_BOOT_FILE, &e) != 0)
        return cmd_fail("tune", "%s", err_text(&e));
    json = tune_restored_encode(&saved);
    tune_restored_format(&saved, &out);
    return admin_print("tune", arg.json, json, &out);
}

static void format_end(const struct tune_plan *p, struct str *out)
{
    if (arg.apply)
        str_addf(out, "\n%u %s set, now and at each boot (%s); weft tune --undo sets them back.\n",
            p->n_changes, p->n_changes == 1 ? "is" : "are", TUNE_BOOT_FILE);
    else
        str_addf(out, "\nweft tune --apply sets %u of them, now and at each boot.\n", p->n_changes);
    if (p->n_device_changes > 0)
        str_add(out, "What is a device's is set again when the agent starts.\n");
}

static int show_plan(const struct tune_plan *p, const struct tune_facts *f)
{
    _cleanup_(str_deinit) struct str out = STR_NULL;
    json_t *json = tune_encode(p, f);

    if (json && json_object_set_new(json, "applied", json_boolean(arg.apply)) < 0)
        json = (json_decref(json), NULL);
    if (!json)
        return cmd_fail("tune", "no memory");
    tune_format(p, f, &out);
    if (p->n_changes == 0)
        str_add(&out, "\nThere is nothing to be changed.\n");
    else
        format_end(p, &out);
    return admin_print("tune", arg.json, json, &out);
}

int cmd_tune(int argc, char **argv)
{
    struct tune_facts f = {.source = ""};
    struct err e = ERR_NULL;
    struct tune_plan p;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    if (arg.apply && arg.undo)
        return cmd_refuse("tune", "--apply and --undo are opposites: give one of them");
    if ((arg.rate_bps == 0) != (arg.rtt_ms == 0))
        return cmd_refuse("tune", "--rate and --rtt belong together: give both, or none");
    if (arg.undo && arg.rate_bps > 0)
        return cmd_refuse(
            "tune", "--rate is for what is to be set, and --undo sets what was there");
    if (arg.undo)
        return undo();
    gather(&f);
    tune_plan_make(&p, &f);
    if (arg.apply && tune_apply(&p, &f, arg.state_dir, TUNE_BOOT_FILE, &e) < 0)
        return cmd_fail("tune", "%s", err_text(&e));
    return show_plan(&p, &f);
}
