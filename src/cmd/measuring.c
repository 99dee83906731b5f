/*
 * measuring.c - the process that lets members measure this node; the agent starts it
 * (agent/measure_host.h).
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
#include "measure/service_process.h"
#include "os/process.h"

int cmd_measuring(int argc, char **argv)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);
    struct err e = ERR_NULL;
    int r;

    if (argc != 1 || getpeername(PROCESS_LINK_FD, (struct sockaddr *)&peer, &len) < 0 ||
        peer.ss_family != AF_UNIX)
        return cmd_refuse("measuring", "\"weft agent\" starts this by itself");
    log_init("measuring", LOG_LEVEL_INFO);
    (void)signal(SIGPIPE, SIG_IGN);
    /* Whatever the agent had open and did not mark as its own. */
    (void)close_range(PROCESS_LINK_FD + 1, ~0U, 0);
    r = service_process_run(PROCESS_LINK_FD, &e);
    if (r != 0)
        log_error("%s", err_text(&e));
    return r == 0 ? CMD_OK : CMD_FAILED;
}
