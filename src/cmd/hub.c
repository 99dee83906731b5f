/*
 * hub.c - weft hub up|status|backup|restore|move: the commands of a hub's operator.
 *
 * Running a hub is in hub_up.c. The others ask the hub that runs on this machine through its admin
 * socket; restore works on the files of one that does not run.
 */
#include <stdio.h>

#include "api/client/client.h"
#include "base/err.h"
#include "base/text.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/mesh_options.h"
#include "cmd/options.h"
#include "hub/networks/backup.h"
#include "hub/networks/public_addresses.h"

static struct {
    struct admin_target target;
    const char *dir;
    const char *state;
    struct option_list public_addresses;
    bool cancel;
    bool force;
    bool json;
} arg;

/* ---- backup --------------------------------------------------------------------------------- */

static const struct option backup_options[] = {
    {"DIR", NULL, option_text, &arg.dir, NULL, "a new directory for the copy", .is_required = true},
    ADMIN_SOCKET_OPTION(arg.target),
    OPTIONS_END,
};

static const struct option_usage backup_usage = {
    .command = "hub backup",
    .summary = "Copy all that the running hub keeps: networks, nodes, tokens and keys.",
    .options = backup_options,
    .notes = "The copy is of one moment. Who has it can be this hub: it is not encrypted.",
};

static int hub_backup(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    struct err e = ERR_NULL;
    const char *path;
    int r;
    int status = admin_call(&arg.target, backup_usage.command, "POST", "/v1/backup", NULL, &answer);

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

/* ---- restore -------------------------------------------------------------------------------- */

static const struct option restore_options[] = {
    {"DIR", NULL, option_text, &arg.dir, NULL, "as \"weft hub backup\" has made it",
        .is_required = true},
    {"--state", "DIR", option_text, &arg.state, "/var/lib/weft/hub", "of the hub, as for hub up"},
    OPTIONS_END,
};

static const struct option_usage restore_usage = {
    .command = "hub restore",
    .summary = "Put a copy in the place of a hub's state. No hub may run on it.",
    .options = restore_options,
    .notes = "What was there is kept beside it.",
};

/* What is to be done now, and with what. */
static void print_next(void)
{
    _cleanup_(str_deinit) struct str options = STR_NULL;

    backup_read_options(arg.state, &options);
    if (str_text(&options)[0])
        (void)printf("its hub was started by: weft hub up%s\n"
                     "next: start it by the same line, with another --public where it is reached "
                     "at another address now",
            str_text(&options));
    else
        (void)printf("next: start it with the --public, --listen, --api and other options that it "
                     "had, \"weft hub up ...\"");
    (void)printf("; or, under systemd, put these options into WEFT_HUB_OPTIONS=\"...\" in "
                 "/etc/default/weft-hub, and then: systemctl enable --now weft-hub\n");
}

static int hub_restore(int argc, char **argv)
{
    _cleanup_(str_deinit) struct str keyless = STR_NULL;
    struct err e = ERR_NULL;
    char former[512];

    if (backup_restore(arg.dir, arg.state, former, &keyless, &e) != 0)
        return cmd_fail(restore_usage.command, "%s", err_text(&e));
    (void)printf("the state in %s is that of %s%s%s\n", arg.state, arg.dir,
        former[0] ? "; what was there is now in " : "", former);
    if (str_text(&keyless)[0])
        (void)fprintf(stderr,
            "weft hub restore: the copy lacks keys/NETWORK.key, or has something else there, for: "
            "%s. A hub sets such a network aside; copy the whole folder, and restore it again\n",
            str_text(&keyless));
    print_next();
    return CMD_OK;
}

/* ---- move ----------------------------------------------------------------------------------- */

static const struct option move_options[] = {
    {"--public", "HOST[:PORT]", option_public, &arg.public_addresses, NULL,
        "where nodes will reach the hub; best first", .many = true},
    {"--cancel", NULL, option_flag, &arg.cancel, NULL, "the hub stays where it is"},
    {"--force", NULL, option_flag, &arg.force, NULL, "announce a name that leads nowhere yet, too"},
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_SOCKET_OPTION(arg.target),
    OPTIONS_END,
};

static const struct option_usage move_usage = {
    .command = "hub move",
    .summary = "Tell all nodes where the hub will be, or say who has been told.",
    .options = move_options,
    .notes = "A hub whose nodes know it by a name needs this only where the name changes.",
};

static void print_list(const char *what, const json_t *list)
{
    const json_t *item;
    size_t i;

    (void)printf("%s", what);
    json_array_foreach(list, i, item)
        (void)printf("%s%s", i == 0 ? " " : ", ", admin_text(item));
    (void)printf("\n");
}

static int print_places(const json_t *answer)
{
    const json_t *next = json_object_get(answer, "next");
    const json_t *uninformed = json_object_get(answer, "untold");
    long long n = json_integer_value(json_object_get(answer, "nodes"));
    long long informed = json_integer_value(json_object_get(answer, "told"));

    print_list("the hub is at", json_object_get(answer, "public"));
    if (json_array_size(next) == 0) {
        (void)printf("no other place is announced\n");
        return CMD_OK;
    }
    print_list("it will be at", next);
    (void)printf("%lld of %lld nodes know it\n", informed, n);
    if (informed < n)
        print_list("they do not hear the hub now, or have no agent:", uninformed);
    return CMD_OK;
}

static int hub_move(int argc, char **argv)
{
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    /* The places that were given; none with --cancel, which is how the API takes them back. */
    json_auto_t *body = json_pack("{s:[]}", "public");
    int status;

    for (size_t i = 0; i < arg.public_addresses.n; i++)
        (void)json_array_append_new(
            json_object_get(body, "public"), json_string(arg.public_addresses.items[i]));
    if (arg.cancel && arg.public_addresses.n > 0)
        status = cmd_refuse(move_usage.command, "say one of --public and --cancel");
    else if (arg.public_addresses.n > OBJECT_ENDPOINTS_MAX)
        status = cmd_refuse(
            move_usage.command, "--public is given for more than %d places", OBJECT_ENDPOINTS_MAX);
    else if (arg.cancel || arg.public_addresses.n > 0)
        status = admin_call(&arg.target, move_usage.command, "PUT",
            arg.force ? "/v1/move?force=1" : "/v1/move", body, &answer);
    else
        status = admin_call(&arg.target, move_usage.command, "GET", "/v1/move", NULL, &answer);
    option_list_deinit(&arg.public_addresses);
    if (status != CMD_OK)
        return status;
    return arg.json ? admin_print_json(move_usage.command, answer.body) : print_places(answer.body);
}

/* ---- status --------------------------------------------------------------------------------- */

static const struct option status_options[] = {
    {"--json", NULL, option_flag, &arg.json, NULL, "print JSON"},
    ADMIN_OPTIONS(arg.target),
    OPTIONS_END,
};

static const struct option_usage status_usage = {
    .command = "hub status",
    .summary = "Say whether the hub answers, and which version it is.",
    .options = status_options,
    .notes = "\"weft nodes\" says how its nodes are.",
};

static void print_health(const json_t *answer)
{
    (void)printf("the hub answers%s; it is weft %s\n",
        json_is_true(json_object_get(answer, "ok")) ? "" : ", and says that something is wrong",
        admin_field(answer, NULL, "version"));
}

static int hub_status(int argc, char **argv)
{
    return admin_show(
        &arg.target, status_usage.command, "GET", "/v1/health", NULL, arg.json, print_health);
}

int cmd_hub(int argc, char **argv)
{
    static const struct option_subcommand commands[] = {
        {"up", cmd_hub_up, "run the hub in the foreground"},
        {"status", hub_status, "say whether the hub answers", &status_usage},
        {"backup", hub_backup, "copy all that a running hub keeps", &backup_usage},
        {"restore", hub_restore, "put a copy in the place of a hub's state", &restore_usage},
        {"move", hub_move, "tell all nodes where the hub will be", &move_usage},
        {NULL},
    };

    return options_dispatch("hub", commands, argc, argv);
}
