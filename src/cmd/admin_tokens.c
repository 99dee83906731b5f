/* admin_tokens.c - weft admin new|ls|rm|rotate: who may administer the hub from elsewhere. */
#include <stdio.h>

#include "api/client/client.h"
#include "base/cleanup.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#define ADMIN_TOKEN_TTL_MAX (3650 * 86400 * NSEC_PER_SEC)

static struct {
    struct admin_target target;
    const char *name;
    const char *role;
    const char *network;
    nsec_t ttl;
    bool json;
} arg;

static const struct option new_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of whom or what will use it",
        .need = OPTION_REQUIRED},
    {"--role", "ROLE", option_word, &arg.role, NULL,
        "viewer (reads), operator (and changes nodes, edges and join tokens) or admin (everything)",
        .words = "viewer, operator, admin", .need = OPTION_REQUIRED},
    {"--ttl", "DURATION", option_duration, &arg.ttl, "30d", "how long it is valid",
        .min = NSEC_PER_SEC, .max = ADMIN_TOKEN_TTL_MAX},
    {"--network", "NAME", option_name, &arg.network, NULL, "only for this network (default: all)"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage new_usage = {
    .command = "admin new",
    .summary = "Make an admin token, for --admin-token-file. It is printed once; the hub keeps "
               "only its hash.",
    .options = new_options,
};

static void print_secret(const json_t *body)
{
    (void)puts(admin_field(body, NULL, "token"));
}

static int admin_new(int argc, char **argv)
{
    int status;

    if (options_parse(&new_usage, argc, argv, &status))
        return status;
    return admin_make(&arg.target, new_usage.command, "/v1/admin-tokens",
        json_pack("{s:s, s:s, s:I, s:s*}", "name", arg.name, "role", arg.role, "ttlSeconds",
            (json_int_t)(arg.ttl / NSEC_PER_SEC), "network", arg.network),
        arg.json, print_secret);
}

static const struct option ls_options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage ls_usage = {
    .command = "admin ls",
    .summary = "List the admin tokens.",
    .options = ls_options,
};

static void print_token(const json_t *t)
{
    const char *network = admin_field(t, NULL, "network");
    char expires[ADMIN_TIME_MAX];
    char used[ADMIN_TIME_MAX];

    (void)printf("%-20s %-9s %-12s %-20s %-20s %s\n", admin_field(t, NULL, "name"),
        admin_field(t, NULL, "role"), network[0] ? network : "all",
        admin_time(t, "expires", expires), admin_time(t, "lastUsed", used),
        admin_field(t, NULL, "createdBy"));
}

static void print_tokens(const json_t *body)
{
    const json_t *t;
    size_t i;

    (void)printf("%-20s %-9s %-12s %-20s %-20s %s\n", "NAME", "ROLE", "NETWORK", "EXPIRES",
        "LAST USED", "MADE BY");
    json_array_foreach(json_object_get(body, "adminTokens"), i, t)
        print_token(t);
}

static int admin_ls(int argc, char **argv)
{
    int status;

    if (options_parse(&ls_usage, argc, argv, &status))
        return status;
    return admin_show(&arg.target, ls_usage.command, "/v1/admin-tokens", arg.json, print_tokens);
}

static const struct option rm_options[] = {
    {"NAME", NULL, option_name, &arg.name, NULL, "of the admin token", .need = OPTION_REQUIRED},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rm_usage = {
    .command = "admin rm",
    .summary = "End an admin token: it opens nothing any more.",
    .options = rm_options,
};

static int admin_rm(int argc, char **argv)
{
    char path[128];
    int status;

    if (options_parse(&rm_usage, argc, argv, &status))
        return status;
    (void)snprintf(path, sizeof(path), "/v1/admin-tokens/%s", arg.name);
    status = admin_delete(&arg.target, rm_usage.command, path);
    if (status == CMD_OK)
        (void)printf("admin token %s is gone\n", arg.name);
    return status;
}

static const struct option rotate_options[] = {
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage rotate_usage = {
    .command = "admin rotate",
    .summary = "Replace the token in the hub's admin.token file; the old one ends at once.",
    .options = rotate_options,
};

static int admin_rotate(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int status;

    if (options_parse(&rotate_usage, argc, argv, &status))
        return status;
    status = admin_call(
        &arg.target, rotate_usage.command, "POST", "/v1/admin-token-file", NULL, &answer);
    if (status == CMD_OK)
        (void)printf(
            "a new token is in %s on the hub's machine\n", admin_field(answer.body, NULL, "path"));
    return status;
}

int cmd_admin(int argc, char **argv)
{
    static const struct option_subcommand table[] = {
        {"new", admin_new, "make an admin token with a role and an end"},
        {"ls", admin_ls, "list the admin tokens"},
        {"rm", admin_rm, "end an admin token"},
        {"rotate", admin_rotate, "replace the token in the hub's admin.token file"},
        {NULL, NULL, NULL},
    };

    return options_dispatch("admin", table, argc, argv);
}
