/* token.c - weft token new|ls|rm: secrets with which machines may join. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "mesh/object/subnets.h"
#include "os/clock.h"

#define TOKEN_TTL_MAX  (365 * 86400 * NSEC_PER_SEC)
#define TOKEN_USES_MAX 100000

static struct {
    struct admin_target target;
    const char *network;
    nsec_t ttl;
    uint64_t uses;
    bool ephemeral;
    bool relay;
    struct subnets routes;
    const char *id;
    bool json;
    bool all;
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
    {"--route", "CIDR", option_subnets, &arg.routes, NULL,
        "its nodes may be the way to subnets inside this one, if they ask for it; with commas, or "
        "given again, several",
        .many = true},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "token new",
    .summary = "Make a token for \"weft join\". It is printed once; the hub keeps only its hash.",
    .options = options,
};

static void print_secret(const json_t *body)
{
    (void)puts(admin_field(body, NULL, "token"));
}

static int token_new(int argc, char **argv)
{
    char path[128];
    json_t *body =
        json_pack("{s:I, s:I, s:b, s:b, s:o*}", "ttlSeconds", (json_int_t)(arg.ttl / NSEC_PER_SEC),
            "uses", (json_int_t)arg.uses, "ephemeral", arg.ephemeral, "relay", arg.relay, "routes",
            arg.routes.n ? subnets_encode(&arg.routes) : NULL);

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/tokens", arg.network);
    return admin_show(&arg.target, usage.command, "POST", path, body, arg.json, print_secret);
}

static const struct option ls_options[] = {
    {"--network", "NAME", option_name, &arg.network, "default", "the network that they admit to"},
    {"--all", NULL, option_flag, &arg.all, NULL, "used up and expired ones, too, for a day"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON: all of them"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage ls_usage = {
    .command = "token ls",
    .summary = "List a network's join tokens.",
    .options = ls_options,
};

static void print_token(const json_t *t)
{
    bool is_ephemeral = json_is_true(json_object_get(t, "ephemeral"));
    bool is_relay = json_is_true(json_object_get(t, "relay"));
    bool is_way = json_array_size(json_object_get(t, "routes")) > 0;
    char expires[ADMIN_TIME_MAX];
    char kinds[32];

    (void)snprintf(kinds, sizeof(kinds), "%s%s%s", is_ephemeral ? ",ephemeral" : "",
        is_relay ? ",relay" : "", is_way ? ",routes" : "");
    (void)printf("%-14s %6" JSON_INTEGER_FORMAT " %-20s %-16s %s\n", admin_field(t, NULL, "id"),
        json_integer_value(json_object_get(t, "usesLeft")), admin_time(t, "expires", expires),
        kinds[0] ? kinds + 1 : "-", admin_field(t, NULL, "createdBy"));
}

static void print_tokens(const json_t *body)
{
    const json_t *t;
    unsigned n_spent = 0;
    size_t i;

    (void)printf("%-14s %6s %-20s %-16s %s\n", "ID", "USES", "EXPIRES", "NODES ARE", "MADE BY");
    json_array_foreach(json_object_get(body, "tokens"), i, t) {
        /* One that has been used up or has expired admits nobody any more. */
        bool is_spent =
            json_integer_value(json_object_get(t, "usesLeft")) == 0 ||
            json_integer_value(json_object_get(t, "expires")) <= clock_wall() / NSEC_PER_SEC;

        if (arg.all || !is_spent)
            print_token(t);
        else
            n_spent++;
    }
    if (n_spent > 0)
        (void)printf("and %u used up or expired, which --all prints\n", n_spent);
}

static int token_ls(int argc, char **argv)
{
    char path[128];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/tokens", arg.network);
    return admin_show(&arg.target, ls_usage.command, "GET", path, NULL, arg.json, print_tokens);
}

/* An ID as "weft token ls" prints it. It is checked here because it becomes part of a URL. */
static int option_token_id(const struct option *o, const char *text, struct err *e)
{
    if (text[0] == '\0' || strlen(text) > 64 || strspn(text, "0123456789abcdef") != strlen(text))
        return err_set(
            e, -EINVAL, "\"%.40s\" is not the ID of a token: \"weft token ls\" prints it", text);
    return option_text(o, text, e);
}

static const struct option rm_options[] = {
    {"ID", NULL, option_token_id, &arg.id, NULL, "of the token, as \"weft token ls\" prints it",
        .is_required = true},
    {"--network", "NAME", option_name, &arg.network, "default", "the network that it admits to"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rm_usage = {
    .command = "token rm",
    .summary = "End a join token at once. Nodes that came with it stay.",
    .options = rm_options,
};

static int token_rm(int argc, char **argv)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "/v1/networks/%s/tokens/%s", arg.network, arg.id);
    return admin_delete(&arg.target, rm_usage.command, path, "token", arg.id);
}

int cmd_token(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"new", token_new, "make a token that admits one machine, or several", &usage},
        {"ls", token_ls, "list a network's tokens", &ls_usage},
        {"rm", token_rm, "end a token at once", &rm_usage},
        {NULL},
    };

    return options_dispatch("token", table, argc, argv);
}
