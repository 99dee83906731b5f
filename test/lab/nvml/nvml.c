/*
 * nvml.c - a stand-in for NVIDIA's library of GPUs, NVML, that says what a file says.
 *
 * The file is "state" in the first folder of LD_LIBRARY_PATH, where the stand-in lies as well: the
 * agent hands that variable on to the process that asks (os/process.h). Its lines are
 *
 *	driver VERSION
 *	init ANSWER			what nvmlInit_v2() returns
 *	hang				it never returns
 *	crash				it ends the process by a signal
 *	gpu BUS MIB USE ECC ANSWER	a GPU; the answer is that of all calls about it
 *	xid BUS NUMBER			an event, once in each process
 *
 * BUS is of two hexadecimal digits. It is read again at each wait for events.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/control/fabric/nvml.h"

#define GPUS_MAX 16
#define XIDS_MAX 16

#define CALL(name, ...)                                                                            \
    int name(__VA_ARGS__);                                                                         \
    int name(__VA_ARGS__)

struct gpu {
    unsigned bus;
    unsigned mib;
    unsigned use;
    unsigned ecc;
    int answer;
};

static struct {
    char version[32];
    int init;
    int hangs;
    int crashes;
    struct gpu gpus[GPUS_MAX];
    unsigned n_gpus;
    unsigned xids[XIDS_MAX][2]; /* bus and number */
    unsigned n_xids;
} said;

/* Events that this process has got. */
static unsigned n_told;

static FILE *open_state(void)
{
    const char *folder = getenv("LD_LIBRARY_PATH");
    char path[512];

    (void)snprintf(path, sizeof(path), "%.*s/state", folder ? (int)strcspn(folder, ":") : 0,
        folder ? folder : "");
    return fopen(path, "re");
}

static unsigned next(char **at, int base)
{
    return (unsigned)strtoul(*at, at, base);
}

/* The words behind @name; NULL: the line says something else. */
static char *words_of(char *line, const char *name)
{
    size_t len = strlen(name);

    return strncmp(line, name, len) == 0 ? line + len : NULL;
}

static void read_line(char *line)
{
    char *at;

    line[strcspn(line, "\n")] = '\0';
    said.hangs |= strcmp(line, "hang") == 0;
    said.crashes |= strcmp(line, "crash") == 0;
    if ((at = words_of(line, "driver ")))
        (void)snprintf(said.version, sizeof(said.version), "%.31s", at);
    if ((at = words_of(line, "init ")))
        said.init = (int)next(&at, 10);
    if ((at = words_of(line, "gpu ")) && said.n_gpus < GPUS_MAX) {
        struct gpu *g = &said.gpus[said.n_gpus++];

        g->bus = next(&at, 16);
        g->mib = next(&at, 10);
        g->use = next(&at, 10);
        g->ecc = next(&at, 10);
        g->answer = (int)next(&at, 10);
    }
    if ((at = words_of(line, "xid ")) && said.n_xids < XIDS_MAX) {
        unsigned *xid = said.xids[said.n_xids++];

        xid[0] = next(&at, 16);
        xid[1] = next(&at, 10);
    }
}

static void read_state(void)
{
    FILE *f = open_state();
    char line[128];

    if (!f)
        return;
    memset(&said, 0, sizeof(said));
    while (fgets(line, sizeof(line), f))
        read_line(line);
    (void)fclose(f);
}

CALL(nvmlInit_v2, void)
{
    read_state();
    while (said.hangs)
        (void)pause();
    if (said.crashes)
        (void)raise(SIGSEGV);
    return said.init;
}

CALL(nvmlShutdown, void)
{
    return NVML_OK;
}

CALL(nvmlSystemGetDriverVersion, char *ret, unsigned cap)
{
    (void)snprintf(ret, cap, "%s", said.version);
    return NVML_OK;
}

CALL(nvmlDeviceGetCount_v2, unsigned *ret)
{
    *ret = said.n_gpus;
    return NVML_OK;
}

CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, void **ret)
{
    *ret = &said.gpus[index];
    return NVML_OK;
}

/* An older driver: the newer call is not there. */
CALL(nvmlDeviceGetPciInfo_v2, void *device, struct nvml_pci *ret)
{
    ret->domain = 0;
    ret->bus = ((const struct gpu *)device)->bus;
    ret->device = 0;
    return NVML_OK;
}

CALL(nvmlDeviceGetName, void *device, char *ret, unsigned cap)
{
    (void)snprintf(ret, cap, "NVIDIA Stand-in");
    return NVML_OK;
}

CALL(nvmlDeviceGetUtilizationRates, void *device, struct nvml_use *ret)
{
    const struct gpu *g = device;

    *ret = (struct nvml_use){.gpu = g->use};
    return g->answer;
}

CALL(nvmlDeviceGetMemoryInfo, void *device, struct nvml_memory *ret)
{
    const struct gpu *g = device;

    *ret = (struct nvml_memory){.total = 80ull << 30, .used = (unsigned long long)g->mib << 20};
    return g->answer;
}

CALL(nvmlDeviceGetTotalEccErrors, void *device, int type, int counter, unsigned long long *ret)
{
    const struct gpu *g = device;

    *ret = type == NVML_UNCORRECTED && counter == NVML_VOLATILE ? g->ecc : 1000;
    return g->answer;
}

CALL(nvmlEventSetCreate, void **ret)
{
    *ret = &said;
    return NVML_OK;
}

CALL(nvmlDeviceRegisterEvents, void *device, unsigned long long types, void *set)
{
    return types == NVML_XID ? NVML_OK : 3;
}

CALL(nvmlEventSetWait_v2, void *set, struct nvml_event *ret, unsigned timeout_ms)
{
    read_state();
    for (unsigned i = 0; n_told < said.n_xids && i < said.n_gpus; i++)
        if (said.gpus[i].bus == said.xids[n_told][0]) {
            *ret = (struct nvml_event){
                .device = &said.gpus[i], .type = NVML_XID, .data = said.xids[n_told][1]};
            n_told++;
            return NVML_OK;
        }
    (void)poll(NULL, 0, (int)timeout_ms);
    return NVML_TIMED_OUT;
}

CALL(nvmlEventSetFree, void *set)
{
    return NVML_OK;
}
