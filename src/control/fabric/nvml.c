/* nvml.c - see nvml.h. */
#include "fabric/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The second one is where Google's images for containers have it. */
static const char *const libraries[] = {
    "libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1"};

#define CALL(field) offsetof(struct nvml, field)

static const struct {
    size_t at;
    const char *names[2]; /* the newer version first */
    bool is_needed;
} calls[] = {
    {CALL(init), {"nvmlInit_v2", "nvmlInit"}, true},
    {CALL(shutdown), {"nvmlShutdown"}, true},
    {CALL(driver_version), {"nvmlSystemGetDriverVersion"}, true},
    {CALL(count), {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, true},
    {CALL(device), {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}, true},
    {CALL(pci), {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"}, true},
    {CALL(name), {"nvmlDeviceGetName"}, false},
    {CALL(use), {"nvmlDeviceGetUtilizationRates"}, false},
    {CALL(memory), {"nvmlDeviceGetMemoryInfo"}, false},
    {CALL(ecc), {"nvmlDeviceGetTotalEccErrors"}, false},
    {CALL(events_new), {"nvmlEventSetCreate"}, false},
    {CALL(events_add), {"nvmlDeviceRegisterEvents"}, false},
    {CALL(events_wait), {"nvmlEventSetWait_v2", "nvmlEventSetWait"}, false},
    {CALL(events_free), {"nvmlEventSetFree"}, false},
};

static void *find_call(void *library, const char *const names[static 2])
{
    void *found = NULL;

    for (unsigned i = 0; i < 2 && !found && names[i]; i++)
        found = dlsym(library, names[i]);
    return found;
}

static bool find_calls(struct nvml *n)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        void *found = find_call(n->library, calls[i].names);

        if (!found && calls[i].is_needed)
            return false;
        /* POSIX has it that a function's address fits (dlsym). */
        memcpy((char *)n + calls[i].at, &found, sizeof(found));
    }
    return true;
}

bool nvml_open(struct nvml *ret)
{
    *ret = (struct nvml)NVML_NULL;
    for (size_t i = 0; i < sizeof(libraries) / sizeof(*libraries) && !ret->library; i++)
        ret->library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (!ret->library)
        return false;
    if (find_calls(ret))
        return true;
    nvml_close(ret);
    return false;
}

void nvml_close(struct nvml *n)
{
    if (n->library)
        (void)dlclose(n->library);
    *n = (struct nvml)NVML_NULL;
}

const char *nvml_explain(int r, char *buf, size_t cap)
{
    static const struct {
        int r;
        const char *words;
    } known[] = {
        {NVML_NO_PERMISSION, "it may not be asked from here"},
        {NVML_NOT_LOADED, "it is not loaded"},
        {NVML_NO_LIBRARY, "a library of it is not there"},
        {NVML_GPU_LOST, "a GPU has fallen off the bus"},
        {NVML_RESET_REQUIRED, "a GPU has to be reset"},
        {NVML_MISMATCH, "its library and what the kernel has loaded are of two versions"},
    };

    (void)snprintf(buf, cap, "NVML answers with the error %d", r);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].r == r)
            (void)snprintf(buf, cap, "%s", known[i].words);
    return buf;
}
