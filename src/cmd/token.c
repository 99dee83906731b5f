/* token.c - weft token new: a secret with which a machine may join. */
#include <inttypes.h>
#include <stdio.h>

#include "api/client.h"
#include "base/cleanup.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#define TOKEN_TTL_MAX  (365 * 86400 * NSEC_PER_SEC)
#define TOKEN_USES_MAX 100000

static struct {
    struct admin_target target;
    const char *network;
    nsec_t ttl;
    uint64_t uses;
    bool ephemeral;
    bool relay;
    bool json;
} arg;

static const struct option options[] = {
    {"--network", "NAME", option_name, &arg.network, "default", "the network that it admits to"},
    {"--ttl", "DURATION", option_duration, &arg.ttl, "1h", "how long it may be used",
        .min = NSEC_PER_SEC, .max = TOKEN_TTL_MAX},
    {"--uses", "N", option_u64, &arg.uses, "1", "how many machines may join with it", .min = 1,
        .max = TOKEN_USES_MAX},
    {"--ephemeral", NULL, option_flag, &arg.ephemeral, NULL,
        "its nodes are removed by themselves once they stay away"},
    {"--relay", NULL, option_flag, &arg.relay, NULL,
        "its nodes may relay for others: they see who talks to whom, and cannot read it"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "token new",
    .summary = "Make a token for \"weft join\". It is printed once; the hub keeps only its hash.",
    .options = options,
};

static int token_new(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    char path[128];
    json_t *body;
    int status;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    body = json_pack("{s:I, s:I, s:b, s:b}", "ttlSeconds", (json_int_t)(arg.ttl / NSEC_PER_SEC),
        "uses", (json_int_t)arg.uses, "ephemeral", arg.ephemeral, "relay", arg.relay);
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/tokens", arg.network);
    status = admin_call(&arg.target, usage.command, "POST", path, body, &answer);
    json_decref(body);
    if (status != CMD_OK)
        return status;
    if (arg.json)
        return admin_print_json(answer.body);
    (void)puts(admin_field(answer.body, NULL, "token"));
    return CMD_OK;
}

int cmd_token(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"new", token_new, "make a token that admits one machine, or several"},
        {NULL, NULL, NULL},
    };

    return options_dispatch("token", table, argc, argv);
}
