/*
 * rendezvous.c - the process that serves a network's jobs; the hub starts it (hub/jobs_host.c).
 *
 * It is in no help: a person has no use for it.
 */
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "os/log.h"
#include "cmd/cmd.h"
#include "rendezvous/rdzv_confine.h"
#include "rendezvous/rdzv_process.h"
#include "os/process.h"

int cmd_rdzv(int argc, char **argv)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);
    struct err e = ERR_NULL;
    int r;

    if (argc != 2 || getpeername(PROCESS_LINK_FD, (struct sockaddr *)&peer, &len) < 0 ||
        peer.ss_family != AF_UNIX)
        return cmd_refuse("rendezvous", "\"weft hub up\" starts this by itself");
    log_init("rendezvous", LOG_LEVEL_INFO);
    (void)signal(SIGPIPE, SIG_IGN);
    /* Whatever the hub had open and did not mark as its own. */
    (void)close_range(PROCESS_LINK_FD + 1, ~0U, 0);
    r = rdzv_confine(&e);
    if (r == 0)
        r = rdzv_process_run(PROCESS_LINK_FD, &e);
    if (r != 0)
        log_error("%s", err_text(&e));
    return r == 0 ? CMD_OK : CMD_FAILED;
}
