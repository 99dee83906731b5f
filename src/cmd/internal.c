/*
 * internal.c - the processes that daemons start by themselves, from the program that they are.
 *
 * The agent starts `weft measuring`, which lets members measure this node (agent/node_measure.h).
 * It starts `weft gpus` each minute, which asks NVIDIA's driver how the GPUs are
 * (agent/node_machine.h). The hub starts `weft rendezvous`, which serves a network's jobs
 * (hub/jobs/rdzv_child.c), and `weft trains`, which measures its line (hub/uplink/hub_uplink.h).
 * All get one end of a socket pair as their descriptor PROCESS_LINK_FD.
 * People have no use for them, so that no help lists them.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "cmd/cmd.h"
#include "fabric/gpu_sampler.h"
#include "measure/service_process.h"
#include "measure/train_process.h"
#include "os/log.h"
#include "os/process.h"
#include "rendezvous/process/rdzv_process.h"

/* What a process ends with, after @r: a log has the reason, since no person waits for it. That who
 * started it has ended meanwhile (-ESRCH) is no fault of it. */
static int finish(int r, const struct err *e)
{
    if (r == -ESRCH)
        log_info("%s", err_text(e));
    else if (r != 0)
        log_error("%s", err_text(e));
    return r == 0 ? CMD_OK : CMD_FAILED;
}

int cmd_measuring(int argc, char **argv)
{
    struct err e = ERR_NULL;

    if (argc != 1 || !process_take_link())
        return cmd_refuse("measuring", "\"weft agent\" starts this by itself");
    log_init("measuring", LOG_LEVEL_INFO);
    return finish(service_process_run(PROCESS_LINK_FD, &e), &e);
}

int cmd_gpus(int argc, char **argv)
{
    struct err e = ERR_NULL;

    if (argc != 2 || !process_take_link())
        return cmd_refuse("gpus", "\"weft agent\" starts this by itself");
    log_init("gpus", LOG_LEVEL_INFO);
    return finish(gpu_sampler_run(PROCESS_LINK_FD, strtoull(argv[1], NULL, 10), &e), &e);
}

int cmd_trains(int argc, char **argv)
{
    struct err e = ERR_NULL;

    if (argc != 1 || !process_take_link())
        return cmd_refuse("trains", "\"weft hub up\" starts this by itself");
    log_init("trains", LOG_LEVEL_INFO);
    return finish(train_process_run(PROCESS_LINK_FD, &e), &e);
}

int cmd_rdzv(int argc, char **argv)
{
    struct err e = ERR_NULL;

    /* argv[1] is the network's name: it shows in the list of processes, and is not read. */
    if (argc != 2 || !process_take_link())
        return cmd_refuse("rendezvous", "\"weft hub up\" starts this by itself");
    log_init("rendezvous", LOG_LEVEL_INFO);
    return finish(rdzv_process_run(PROCESS_LINK_FD, &e), &e);
}
