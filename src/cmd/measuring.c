/*
 * measuring.c - the process that lets members measure this node; the agent starts it
 * (agent/measure_host.h).
 *
 * It is in no help: a person has no use for it.
 */
#include "base/err.h"
#include "cmd/cmd.h"
#include "measure/service_process.h"
#include "os/log.h"
#include "os/process.h"

int cmd_measuring(int argc, char **argv)
{
    struct err e = ERR_NULL;
    int r;

    if (argc != 1 || !process_take_link())
        return cmd_refuse("measuring", "\"weft agent\" starts this by itself");
    log_init("measuring", LOG_LEVEL_INFO);
    r = service_process_run(PROCESS_LINK_FD, &e);
    if (r != 0)
        log_error("%s", err_text(&e));
    return r == 0 ? CMD_OK : CMD_FAILED;
}
