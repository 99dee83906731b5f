/* hub_backup.c - weft hub backup|restore: a copy of all that a hub keeps, and back again. */
#include "cmd/hub_backup.h"

#include <stdio.h>

#include "api/client/client.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "hub/networks/backup.h"

static struct {
    struct admin_target target;
    const char *dir;
    const char *state;
} arg;

static const struct option backup_options[] = {
    {"DIR", NULL, option_text, &arg.dir, NULL, "a new directory for the copy",
        .need = OPTION_REQUIRED},
    {"--socket", "PATH", option_text, &arg.target.socket, "/run/weft/hub.sock",
        "admin socket of the hub on this machine"},
    OPTIONS_END,
};

static const struct option_usage backup_usage = {
    .command = "hub backup",
    .summary = "Copy all that the running hub keeps: networks, nodes, tokens and keys.",
    .options = backup_options,
    .notes = "The copy is of one moment. Who has it can be this hub: it is not encrypted.",
};

int hub_backup(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    struct err e = ERR_NULL;
    const char *path;
    int status;
    int r;

    if (options_parse(&backup_usage, argc, argv, &status))
        return status;
    status = admin_call(&arg.target, backup_usage.command, "POST", "/v1/backup", NULL, &answer);
    if (status != CMD_OK)
        return status;
    path = admin_field(answer.body, NULL, "path");
    r = backup_copy(path, arg.dir, &e);
    backup_remove(path);
    if (r != 0)
        return cmd_fail(backup_usage.command, "%s", err_text(&e));
    (void)printf(
        "the hub's state is in %s; \"weft hub restore %s\" makes a hub of it\n", arg.dir, arg.dir);
    return CMD_OK;
}

static const struct option restore_options[] = {
    {"DIR", NULL, option_text, &arg.dir, NULL, "as \"weft hub backup\" has made it",
        .need = OPTION_REQUIRED},
    {"--state", "DIR", option_text, &arg.state, "/var/lib/weft/hub", "of the hub, as for hub up"},
    OPTIONS_END,
};

static const struct option_usage restore_usage = {
    .command = "hub restore",
    .summary = "Put a copy in the place of a hub's state. No hub may run on it.",
    .options = restore_options,
    .notes = "What was there is kept beside it.",
};

int hub_restore(int argc, char **argv)
{
    struct err e = ERR_NULL;
    char former[512];
    int status;

    if (options_parse(&restore_usage, argc, argv, &status))
        return status;
    if (backup_restore(arg.dir, arg.state, former, &e) != 0)
        return cmd_fail(restore_usage.command, "%s", err_text(&e));
    (void)printf("the state in %s is that of %s%s%s\n", arg.state, arg.dir,
        former[0] ? "; what was there is now in " : "", former);
    return CMD_OK;
}
