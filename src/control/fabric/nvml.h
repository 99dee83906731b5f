/*
 * nvml.h - NVIDIA's library that tells of GPUs, NVML, by the calls that it documents.
 *
 * It is loaded while the program runs, where there is one: nothing of NVIDIA's is needed to build,
 * or on a machine without GPUs. Of a call that has got a newer version the newer one is taken, and
 * the older one where that is not there. The library talks with a driver that may hang or crash
 * whoever asks, so only a process of its own loads it (fabric/gpu_sampler.h).
 *
 * Source: NVML API Reference Guide (nvml.h of CUDA 12).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** What a call returns: nvmlReturn_t. */
enum {
    NVML_OK = 0,
    NVML_NO_PERMISSION = 4,
    NVML_NOT_LOADED = 9,
    NVML_TIMED_OUT = 10,
    NVML_NO_LIBRARY = 12,
    NVML_GPU_LOST = 15,
    NVML_RESET_REQUIRED = 16,
    NVML_MISMATCH = 18,
};

/** nvmlPciInfo_t, up to what all its versions have. */
struct nvml_pci {
    char legacy_bus[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    char rest[128]; /* more than any version adds */
};

/** nvmlUtilization_t: percent of the last second, or less. */
struct nvml_use {
    unsigned gpu;
    unsigned memory;
};

/** nvmlMemory_t, bytes. */
struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

/** nvmlEventData_t of version 2, which is longer than version 1. */
struct nvml_event {
    void *device;
    unsigned long long type;
    unsigned long long data; /* of an Xid: its number */
    unsigned gpu_instance;
    unsigned compute_instance;
};

/** NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC, nvmlEventTypeXidCriticalError. */
#define NVML_UNCORRECTED 1
#define NVML_VOLATILE    0
#define NVML_XID         8ull

/** The calls. NULL: the library does not have it, which only those behind @count may be. */
struct nvml {
    void *library; /* owns */
    int (*init)(void);
    int (*shutdown)(void);
    int (*driver_version)(char *ret, unsigned cap);
    int (*count)(unsigned *ret);
    int (*device)(unsigned index, void **ret);
    int (*pci)(void *device, struct nvml_pci *ret);
    int (*name)(void *device, char *ret, unsigned cap);
    int (*use)(void *device, struct nvml_use *ret);
    int (*memory)(void *device, struct nvml_memory *ret);
    int (*ecc)(void *device, int type, int counter, unsigned long long *ret);
    int (*events_new)(void **ret);
    int (*events_add)(void *device, unsigned long long types, void *set);
    int (*events_wait)(void *set, struct nvml_event *ret, unsigned timeout_ms);
    int (*events_free)(void *set);
};

#define NVML_NULL                                                                                  \
    {                                                                                              \
        .library = NULL                                                                            \
    }

/** nvml_open() - load the library. False: there is none, or it lacks a call that is needed. */
bool nvml_open(struct nvml *ret);

/** nvml_close() - unload it; idempotent. */
void nvml_close(struct nvml *n);

/** nvml_explain() - a return value as a clause: "the driver is not loaded". Returns @buf. */
const char *nvml_explain(int r, char *buf, size_t cap);
