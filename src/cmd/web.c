/* web.c - weft web: a login for the page that a hub shows to browsers. */
#include <stdio.h>

#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "hub/record/request.h"

static struct {
    struct admin_target target;
    const char *role;
    const char *network;
    nsec_t ttl;
} arg;

static const struct option options[] = {
    {"--role", "ROLE", option_text, &arg.role, NULL,
        "viewer, operator or admin (default: that of who asks)"},
    {"--network", "NAME", option_name, &arg.network, NULL, "for this network only"},
    {"--ttl", "DURATION", option_duration, &arg.ttl, "10m", "how long the login waits for its use",
        .min = REQUEST_LOGIN_TTL_MIN * NSEC_PER_SEC, .max = REQUEST_LOGIN_TTL_MAX * NSEC_PER_SEC},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "web",
    .summary = "Print the URL of the hub's page, with a login that is used once.",
    .options = options,
    .notes = "The hub shows the page when it was started with --web. Who opens the URL has the "
             "role for 12 hours, or until \"Log out\".",
};

static void print_url(const json_t *body)
{
    (void)puts(admin_field(body, NULL, "url"));
}

int cmd_web(int argc, char **argv)
{
    int status;
    json_t *body;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    body = json_pack("{s:s*, s:s*, s:I}", "role", arg.role, "network", arg.network, "ttlSeconds",
        (json_int_t)(arg.ttl / NSEC_PER_SEC));
    return admin_show(&arg.target, usage.command, "POST", "/v1/web/logins", body, false, print_url);
}
