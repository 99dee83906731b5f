/* leave.c - weft leave: this machine is a node no more. */
#include <stdio.h>

#include "agent/launch.h"
#include "agent/state.h"
#include "base/err.h"
#include "cmd/cmd.h"
#include "cmd/options.h"

#define LEAVE_TIMEOUT_MS 10000

static struct {
    const char *state_dir;
    const char *socket;
} arg;

static const struct option options[] = {
    {"--state", "DIR", option_text, &arg.state_dir, STATE_DIR_DEFAULT, "as given to weft join"},
    {"--socket", "PATH", option_text, &arg.socket, STATE_SOCKET_DEFAULT, "as given to weft join"},
    OPTIONS_END,
};

static const struct option_usage usage = {
    .command = "leave",
    .summary = "Leave the network: tell the hub, remove the interface and the node's state.",
    .options = options,
    .notes = "It also works while the agent or the hub is away; what could not be done is said.",
};

static void print_farewell(const char *network, const char *interface, bool told, const char *why)
{
    (void)printf("Left the network %s; the interface %s is gone.\n", network, interface);
    if (!told)
        (void)printf("The hub could not be told (%s): weft node rm removes the node there.\n", why);
}

static const char *text_of(const json_t *answer, const char *field)
{
    const char *text = json_string_value(json_object_get(answer, field));

    return text ? text : "?";
}

int cmd_leave(int argc, char **argv)
{
    struct launch_farewell farewell;
    struct err e = ERR_NULL;
    json_t *answer = NULL;
    int status;
    int r;

    if (options_parse(&usage, argc, argv, &status))
        return status;
    r = launch_ask(arg.socket, "POST", "/v1/leave", LEAVE_TIMEOUT_MS, &answer, &e);
    if (r == 0) {
        print_farewell(text_of(answer, "network"), text_of(answer, "interface"),
            json_is_true(json_object_get(answer, "hubTold")), text_of(answer, "why"));
        json_decref(answer);
        return CMD_OK;
    }
    if (r == LAUNCH_E_NO_AGENT)
        r = launch_leave_alone(arg.state_dir, arg.socket, &farewell, &e);
    if (r != 0)
        return cmd_fail("leave", "%s", err_text(&e));
    print_farewell(farewell.network, farewell.interface, farewell.told, farewell.why);
    return CMD_OK;
}
