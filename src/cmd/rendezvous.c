/*
 * rendezvous.c - the process that serves a network's jobs; the hub starts it (hub/jobs/job_host.c).
 *
 * It is in no help: a person has no use for it.
 */
#include "base/err.h"
#include "cmd/cmd.h"
#include "os/log.h"
#include "os/process.h"
#include "rendezvous/process/rdzv_confine.h"
#include "rendezvous/process/rdzv_process.h"

int cmd_rdzv(int argc, char **argv)
{
    struct err e = ERR_NULL;
    int r;

    if (argc != 2 || !process_take_link())
        return cmd_refuse("rendezvous", "\"weft hub up\" starts this by itself");
    log_init("rendezvous", LOG_LEVEL_INFO);
    r = rdzv_confine(&e);
    if (r == 0)
        r = rdzv_process_run(PROCESS_LINK_FD, &e);
    if (r != 0)
        log_error("%s", err_text(&e));
    return r == 0 ? CMD_OK : CMD_FAILED;
}
