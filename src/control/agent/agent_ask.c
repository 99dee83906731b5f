/* agent_ask.c - see agent_ask.h. */
#include "agent/agent_ask.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/state/state.h"
#include "api/client/client.h"
#include "base/err.h"
#include "net/socket/unix_socket.h"
#include "os/file.h"
#include "os/process.h"

/* Why no agent answers, and which command helps. */
static int explain_no_agent(const char *socket_path, struct err *e)
{
    char text[REMOVED_TEXT_MAX];
    struct removed rm;

    if (removed_read(&rm, STATE_DIR_DEFAULT, NULL) == 0 && strcmp(rm.socket_path, socket_path) == 0)
        return err_set(e, AGENT_ASK_E_NONE, "%s; join again with a new token (weft join TOKEN)",
            removed_explain(&rm, text));
    if (access(socket_path, F_OK) == 0 && access(socket_path, W_OK) < 0)
        return err_set(e, AGENT_ASK_E_NONE,
            "the agent's socket %s is not for this user: run it as root, or with sudo -E, or "
            "become a member of the group weft",
            socket_path);
    if (access(socket_path, F_OK) == 0)
        return err_set(e, AGENT_ASK_E_NONE,
            "no agent answers on %s: it has ended (systemctl start weft-agent, or without "
            "systemd weft agent --background)",
            socket_path);
    return err_set(e, AGENT_ASK_E_NONE,
        "there is no agent on %s: this machine has not joined a network (weft join TOKEN), or its "
        "agent does not run (systemctl start weft-agent, or without systemd weft agent "
        "--background) or has another --socket",
        socket_path);
}

int agent_ask(const char *socket_path, const char *method, const char *path, unsigned timeout_ms,
    json_t **ret, struct err *e)
{
    return agent_ask_with(socket_path, method, path, NULL, timeout_ms, ret, e);
}

int agent_ask_with(const char *socket_path, const char *method, const char *path,
    const json_t *body, unsigned timeout_ms, json_t **ret, struct err *e)
{
    char users[UNIX_SOCKET_CHOICE_CAP];
    struct client_target target = {
        .access = CLIENT_ACCESS_UNIX, .address = unix_socket_choose(socket_path, users)};
    _cleanup_(client_answer_deinit) struct client_answer answer = CLIENT_ANSWER_NULL;
    int r = client_call(&target, method, path, body, timeout_ms, &answer, e);

    if (r == CLIENT_E_UNREACHABLE && answer.is_lost)
        return err_set(e, AGENT_ASK_E_NONE,
            "the agent on %s was asked, and no answer came: it stands still, it has ended "
            "meanwhile, or the machine has too much to do (systemctl restart weft-agent)",
            socket_path);
    if (r == CLIENT_E_UNREACHABLE)
        return explain_no_agent(socket_path, e);
    if (r == 0 && ret)
        *ret = json_incref(answer.body);
    return r > 0 ? -EIO : r;
}

int agent_ask_to_end(
    const char *socket_path, const char *path, unsigned timeout_ms, json_t **ret, struct err *e)
{
    _cleanup_(closep) int fd = unix_socket_connect(socket_path, SOCK_STREAM);
    pid_t agent = fd < 0 ? 0 : unix_socket_peer(fd);
    int r = agent_ask(socket_path, "POST", path, timeout_ms, ret, e);

    closep(&fd);
    if (r == 0 && agent > 0) {
        r = process_wait_end(agent, timeout_ms);
        if (r < 0)
            return err_set(e, r,
                "the interface is gone, but the agent (process %d) has not ended: %s", (int)agent,
                strerror(-r));
    }
    return r;
}
