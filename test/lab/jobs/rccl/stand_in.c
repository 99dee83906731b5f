/* stand_in.c - HIP and ROCm SMI without a GPU, as far as RCCL asks for them.
 *
 * Linked as libamdhip64.so.5 with versions.map, and as librocm_smi64.so.1. There is one device, at
 * 0000:03:00.0, which reaches no other. Its memory is this machine's, and all its streams are one.
 * Of its kernels those that send and receive are done by threads (kernel.h). So RCCL looks for
 * interfaces, meets, connects, and moves data through its proxies as it is. test_rccl.py compiles
 * it with Debian's headers.
 */
#include <hip/hip_runtime_api.h>
#include <rocm_smi/rocm_smi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define BUS    3
#define BUS_ID "0000:03:00.0"
#define PAGE   4096
#define WARP   64
#define DEVICE "gfx908"

/* Something that takes effect at once, or is never looked at. */
#define NOTHING(name, ...)                                                                         \
    hipError_t name(__VA_ARGS__)                                                                   \
    {                                                                                              \
        return hipSuccess;                                                                         \
    }

static hipError_t take(void **ret, size_t size)
{
    *ret = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE + PAGE);
    return *ret ? hipSuccess : hipErrorOutOfMemory;
}

static hipError_t give_zero(int *ret)
{
    *ret = 0;
    return hipSuccess;
}

/* A stream or an event: only its address counts. */
static void *handle(void)
{
    static char handles[1];

    return handles;
}

/* ---- the device ----------------------------------------------------------------------------- */

hipError_t hipGetDeviceCount(int *count)
{
    *count = 1;
    return hipSuccess;
}

hipError_t hipGetDevice(int *device)
{
    return give_zero(device);
}

hipError_t hipDeviceGetByPCIBusId(int *device, const char *bus_id)
{
    return give_zero(device);
}

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    return give_zero(can);
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
    *value = attribute == hipDeviceAttributeWarpSize ? WARP : 0;
    return hipSuccess;
}

hipError_t hipDeviceGetPCIBusId(char *bus_id, int len, int device)
{
    (void)snprintf(bus_id, (size_t)len, "%s", BUS_ID);
    return hipSuccess;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_t *p, int device)
{
    memset(p, 0, sizeof(*p));
    (void)snprintf(p->name, sizeof(p->name), "a stand-in");
    (void)snprintf(p->gcnArchName, sizeof(p->gcnArchName), DEVICE);
    p->gcnArch = 908;
    p->major = 9;
    p->warpSize = WARP;
    p->multiProcessorCount = 120;
    p->totalGlobalMem = 1U << 30;
    p->pciBusID = BUS;
    return hipSuccess;
}

NOTHING(hipSetDevice, int device)
NOTHING(hipDeviceEnablePeerAccess, int device, unsigned int flags)
NOTHING(hipThreadExchangeStreamCaptureMode, hipStreamCaptureMode *mode)
NOTHING(hipGetLastError, void)

const char *hipGetErrorString(hipError_t error)
{
    return error == hipSuccess ? "no error" : "the stand-in refused";
}

/* ---- memory --------------------------------------------------------------------------------- */

hipError_t hipMalloc(void **ret, size_t size)
{
    return take(ret, size);
}

hipError_t hipExtMallocWithFlags(void **ret, size_t size, unsigned int flags)
{
    return take(ret, size);
}

hipError_t hipHostMalloc(void **ret, size_t size, unsigned int flags)
{
    return take(ret, size);
}

hipError_t hipFree(void *p)
{
    free(p);
    return hipSuccess;
}

hipError_t hipHostFree(void *p)
{
    return hipFree(p);
}

hipError_t hipHostGetDevicePointer(void **ret, void *p, unsigned int flags)
{
    *ret = p;
    return hipSuccess;
}

hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind)
{
    memcpy(to, from, size);
    return hipSuccess;
}

hipError_t hipMemcpyAsync(
    void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream)
{
    return hipMemcpy(to, from, size, kind);
}

hipError_t hipMemsetAsync(void *to, int byte, size_t size, hipStream_t stream)
{
    memset(to, byte, size);
    return hipSuccess;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *ret, const void *p)
{
    memset(ret, 0, sizeof(*ret));
    ret->devicePointer = (void *)p;
    return hipSuccess;
}

NOTHING(hipHostRegister, void *p, size_t size, unsigned int flags)
NOTHING(hipHostUnregister, void *p)
NOTHING(hipIpcCloseMemHandle, void *p)
NOTHING(hipIpcGetMemHandle, hipIpcMemHandle_t *ret, void *p)

hipError_t hipIpcOpenMemHandle(void **ret, hipIpcMemHandle_t of, unsigned int flags)
{
    return hipErrorNotSupported;
}

/* ---- streams, events, kernels --------------------------------------------------------------- */

hipError_t hipStreamCreateWithFlags(hipStream_t *ret, unsigned int flags)
{
    *ret = handle();
    return hipSuccess;
}

hipError_t hipEventCreateWithFlags(hipEvent_t *ret, unsigned int flags)
{
    *ret = handle();
    return hipSuccess;
}

hipError_t hipEventCreate(hipEvent_t *ret)
{
    return hipEventCreateWithFlags(ret, 0);
}

hipError_t hipStreamAddCallback(
    hipStream_t stream, hipStreamCallback_t callback, void *data, unsigned int flags)
{
    callback(stream, hipSuccess, data);
    return hipSuccess;
}

NOTHING(hipStreamDestroy, hipStream_t stream)
NOTHING(hipStreamWaitEvent, hipStream_t stream, hipEvent_t event, unsigned int flags)
NOTHING(hipEventDestroy, hipEvent_t event)
NOTHING(hipEventQuery, hipEvent_t event)
NOTHING(hipEventRecord, hipEvent_t event, hipStream_t stream)
NOTHING(hipFuncSetAttribute, const void *function, hipFuncAttribute attribute, int value)

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    kernel_wait();
    return hipSuccess;
}

hipError_t hipLaunchKernel(
    const void *kernel, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t stream)
{
    kernel_launch(args);
    return hipSuccess;
}

hipError_t hipExtLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
    hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags)
{
    kernel_launch(args);
    return hipSuccess;
}

hipError_t hipFuncGetAttributes(struct hipFuncAttributes *ret, const void *function)
{
    memset(ret, 0, sizeof(*ret));
    return hipSuccess;
}

/* What a compiler of HIP has put into RCCL's start. */
void **__hipRegisterFatBinary(const void *data);
void **__hipRegisterFatBinary(const void *data)
{
    static void *module;

    return &module;
}

void __hipRegisterFunction(void);
void __hipRegisterFunction(void)
{
}
void __hipUnregisterFatBinary(void);
void __hipUnregisterFatBinary(void)
{
}

hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream)
{
    return hipErrorNotSupported;
}

/* ---- ROCm SMI ------------------------------------------------------------------------------- */

rsmi_status_t rsmi_init(uint64_t flags)
{
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_num_monitor_devices(uint32_t *count)
{
    *count = 1;
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_dev_pci_id_get(uint32_t device, uint64_t *bdf)
{
    *bdf = BUS << 8;
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_version_get(rsmi_version_t *version)
{
    *version = (rsmi_version_t){.major = 5, .build = "stand-in"};
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_status_string(rsmi_status_t status, const char **text)
{
    *text = "the stand-in has no such thing";
    return RSMI_STATUS_SUCCESS;
}

rsmi_status_t rsmi_topo_get_link_type(
    uint32_t from, uint32_t to, uint64_t *hops, RSMI_IO_LINK_TYPE *type)
{
    return RSMI_STATUS_NOT_SUPPORTED;
}

rsmi_status_t rsmi_topo_get_link_weight(uint32_t from, uint32_t to, uint64_t *weight)
{
    return RSMI_STATUS_NOT_SUPPORTED;
}

rsmi_status_t rsmi_minmax_bandwidth_get(uint32_t from, uint32_t to, uint64_t *least, uint64_t *most)
{
    return RSMI_STATUS_NOT_SUPPORTED;
}
