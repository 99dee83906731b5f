/* without_agent.c - see without_agent.h. */
#include "agent/without_agent.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/hublink/farewell.h"
#include "agent/reconcile/reconcile.h"
#include "agent/resolved_link.h"
#include "agent/state/removed.h"
#include "base/err.h"
#include "base/secret.h"
#include "mesh/render/render.h"
#include "net/socket/unix_socket.h"
#include "os/fd_cleanup.h"
#include "os/hosts_file.h"
#include "wire/member_proof.h"

/* The interface may still be there and carry packets, although no agent runs. */
static void tell_hub(const struct state *st, struct without_agent_done *ret)
{
    const struct node *hub = render_hub(&st->snapshot);
    struct member_proof_signer signer;
    struct err e = ERR_NULL;
    struct endpoint api;

    if (!hub || !member_proof_signer_init(&signer, &st->secret, &hub->key)) {
        (void)snprintf(ret->why, sizeof(ret->why), "it is not known");
        return;
    }
    api = (struct endpoint){.addr = hub->address4, .port = hub->hub->api_port};
    ret->told = farewell_tell(st, &st->snapshot, &api, &signer, &e) == 0;
    secret_wipe(&signer, sizeof(signer));
    if (!ret->told)
        (void)snprintf(ret->why, sizeof(ret->why), "%.*s", (int)sizeof(ret->why) - 1, err_text(&e));
}

/* Removes the names. A failure is kept in @ret and does not hold back the rest. */
static void forget_names(const struct state *st, struct without_agent_done *ret)
{
    struct err e = ERR_NULL;
    bool changed;

    (void)hosts_owner(&st->snapshot, ret->hosts_owner);
    if (st->keeps_hosts &&
        hosts_file_put(HOSTS_FILE_DEFAULT, ret->hosts_owner, NULL, &changed, &e) < 0)
        (void)snprintf(ret->names_why, sizeof(ret->names_why), "%.*s",
            (int)sizeof(ret->names_why) - 1, err_text(&e));
}

static int take_down(const struct state *st, struct without_agent_done *ret, struct err *e)
{
    struct reconcile rc = RECONCILE_NULL;
    const struct render_input in = {.snapshot = &st->snapshot};
    int r = reconcile_init(&rc, st->interface, st->engine, st->accepts, e);

    if (r == 0) {
        reconcile_assume(&rc, &in);
        r = reconcile_take_down(&rc, e);
    }
    if (r == 0)
        forget_names(st, ret);
    reconcile_deinit(&rc);
    return r;
}

/* Removes what is at @path if it is a socket, and nothing else. */
static void remove_socket(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        (void)unlink(path);
}

/* Removes the sockets that an agent left behind when it was killed, and what it had root tell. */
static void remove_stale_files(const char *path)
{
    char measure[PATH_MAX];

    (void)snprintf(measure, sizeof(measure), "%s%s", path, AGENT_MEASURE_SUFFIX);
    remove_socket(path);
    remove_socket(measure);
    (void)snprintf(measure, sizeof(measure), "%s" UNIX_SOCKET_USERS_SUFFIX, path);
    remove_socket(measure);
    if (strcmp(path, STATE_SOCKET_DEFAULT) == 0)
        (void)unlink(RESOLVED_LINK_FILE);
}

/* Reads the node's state, and takes the lock so that no agent starts meanwhile. */
static int load(const char *state_dir, struct state *st, int *ret_lock_fd,
    struct without_agent_done *ret, struct err *e)
{
    char text[REMOVED_TEXT_MAX];
    struct removed rm;
    int r = state_check_dir(state_dir, e);

    if (r == 0)
        r = state_read(st, state_dir, e);
    if (r == STATE_E_ABSENT && removed_read(&rm, state_dir, NULL) == 0)
        return err_set(e, WITHOUT_AGENT_E_REMOVED, "nothing of it is left here: %s",
            removed_explain(&rm, text));
    if (r == STATE_E_ABSENT)
        return err_set(
            e, r, "this machine has not joined a network (%s has no node.json)", state_dir);
    if (r == 0)
        r = state_lock(state_dir, ret_lock_fd, e);
    if (r < 0)
        return r;
    *ret = (struct without_agent_done){0};
    (void)snprintf(
        ret->network, sizeof(ret->network), "%.*s", NAME_MAX_LEN, st->snapshot.network.meta.name);
    (void)snprintf(ret->interface, sizeof(ret->interface), "%s", st->interface);
    return 0;
}

int without_agent_take_down(
    const char *state_dir, const char *socket_path, struct without_agent_done *ret, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    _cleanup_(closep) int lock_fd = -1;
    int r = load(state_dir, &st, &lock_fd, ret, e);

    if (r == 0)
        r = take_down(&st, ret, e);
    if (r == 0)
        remove_stale_files(socket_path);
    return r;
}

int without_agent_leave(
    const char *state_dir, const char *socket_path, struct without_agent_done *ret, struct err *e)
{
    _cleanup_(state_deinit) struct state st = STATE_NULL;
    _cleanup_(closep) int lock_fd = -1;
    int r = load(state_dir, &st, &lock_fd, ret, e);

    if (r != 0)
        return r;
    tell_hub(&st, ret);
    r = take_down(&st, ret, e);
    if (r == 0)
        r = state_remove(state_dir, e);
    if (r == 0)
        remove_stale_files(socket_path);
    return r;
}
