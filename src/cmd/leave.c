/* leave.c - weft leave: this machine is a node no more. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "agent/leave.h"
#include "agent/state/blocks_file.h"
#include "agent/state/state.h"
#include "base/err.h"
#include "cmd/admin.h"
#include "cmd/cmd.h"
#include "cmd/options.h"
#include "os/hosts_file.h"

/* The agent tries each way to the hub, one after the other. */
#define LEAVE_TIMEOUT_MS 30000

/* Where weft hub up --relay-only has its state, unless --state says otherwise. */
#define RELAY_STATE "/var/lib/weft/hub"

static struct {
    const char *state_dir;
    const char *socket;
} arg;

static const struct option options[] = {
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT, "as given to weft join"},
    {"--socket", "PATH", option_socket, &arg.socket, STATE_SOCKET_DEFAULT, "as given to weft join"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "leave",
    .summary = "Leave the network: tell the hub, remove the interface and the node's state.",
    .options = options,
    .notes = "It also works while the agent or the hub is away; what could not be done is said.",
};

static void print_result(const struct leave_result *f)
{
    /* It lies in a directory of root's, where the agent could not remove it. */
    blocks_file_remove(arg.state_dir);
    (void)printf("Left the network %s; the interface %s is gone.\n", f->network, f->interface);
    if (!f->has_reported_hub)
        (void)printf(
            "The hub could not be told (%s): \"weft node rm %s\" removes the node there.\n", f->why,
            f->node[0] != '\0' ? f->node : "NODE");
    if (f->names_why[0] != '\0')
        (void)printf("The nodes' names are still in " HOSTS_FILE_DEFAULT
                     ", between \"# weft begin %s\" and \"# weft end %s\" (%s).\n",
            f->hosts_owner, f->hosts_owner, f->names_why);
}

static void take_text(char *buf, size_t cap, const json_t *answer, const char *field)
{
    (void)snprintf(buf, cap, "%s", admin_field(answer, NULL, field));
}

static void take_result(struct leave_result *f, const json_t *answer)
{
    bool changed;

    *f =
        (struct leave_result){.has_reported_hub = json_is_true(json_object_get(answer, "hubTold"))};
    take_text(f->network, sizeof(f->network), answer, "network");
    take_text(f->node, sizeof(f->node), answer, "node");
    take_text(f->interface, sizeof(f->interface), answer, "interface");
    take_text(f->why, sizeof(f->why), answer, "why");
    take_text(f->hosts_owner, sizeof(f->hosts_owner), answer, "hostsOwner");
    take_text(f->names_why, sizeof(f->names_why), answer, "namesWhy");
    /* The agent's sandbox may have kept it from the hosts file, which this command can write. */
    if (f->names_why[0] != '\0' &&
        hosts_file_put(HOSTS_FILE_DEFAULT, f->hosts_owner, NULL, &changed, NULL) == 0)
        f->names_why[0] = '\0';
}

/* A relay of weft hub up --relay-only is a node as well, whose state is where a hub's is. */
static void name_relay(struct err *e)
{
    struct err why = *e;

    if (strcmp(arg.state_dir, STATE_DIR_DEFAULT) == 0 &&
        access(RELAY_STATE "/node.json", F_OK) == 0)
        (void)err_set(e, why.code,
            "%s; as a relay of weft hub up --relay-only it has: weft leave --state " RELAY_STATE,
            err_text(&why));
}

int cmd_leave(int argc, char **argv)
{
    struct leave_result result;
    struct err e = ERR_NULL;
    json_t *answer = NULL;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    r = agent_ask_to_end(arg.socket, "/v1/leave", LEAVE_TIMEOUT_MS, &answer, &e);
    if (answer) {
        take_result(&result, answer);
        json_decref(answer);
        print_result(&result);
        return r == 0 ? CMD_OK : cmd_fail("leave", "%s", err_text(&e));
    }
    if (r == AGENT_ASK_E_NONE) {
        struct err why = e;

        r = leave_without_agent(arg.state_dir, arg.socket, false, &result, &e);
        /* An agent is there, so what it was asked says more than that its state is held. */
        if (r == -EBUSY)
            e = why;
        if (r == STATE_E_ABSENT)
            name_relay(&e);
    }
    if (r == LEAVE_E_REMOVED) {
        (void)printf("Already left; %s.\n", err_text(&e));
        return CMD_OK;
    }
    if (r != 0)
        return cmd_fail("leave", "%s", err_text(&e));
    print_result(&result);
    return CMD_OK;
}
