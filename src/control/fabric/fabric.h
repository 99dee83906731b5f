/*
 * fabric.h - which fast fabric a machine has, and with whom it may share it.
 *
 * Reads what the kernel says of the machine (verbs devices, network interfaces, PCI, DMI), what the
 * NVIDIA driver says, which NCCL plugins lie on the disk, and where the cloud says that the machine
 * is. Every claim has its evidence: the file or the answer that says so, and what it says. A device
 * that is there is found, and no more: whether another machine is reached over it is seen only when
 * something has gone over it.
 *
 * The files are read below a root, so that recorded machines are read like this one
 * (test/platform/machines). No library of a vendor is asked: the agent runs where none is
 * installed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "fabric/metadata.h"

struct fabric_report;
struct str;

#define FABRIC_DEVICES_MAX 64
#define FABRIC_NICS_MAX    64
#define FABRIC_CLAIMS_MAX  24
#define FABRIC_NAME_MAX    32
#define FABRIC_PATH_MAX    96

/** The fabrics. A machine has the best of them that it has: the first in this order. */
enum fabric_kind {
    FABRIC_EFA,        /* AWS Elastic Fabric Adapter */
    FABRIC_INFINIBAND, /* verbs devices with InfiniBand links */
    FABRIC_GCE_RDMA,   /* Google A3 Ultra, A4: RoCE by the plugin gIB */
    FABRIC_TCPXO,      /* Google A3 Mega: GPUDirect-TCPXO */
    FABRIC_TCPX,       /* Google A3 High: GPUDirect-TCPX */
    FABRIC_ROCE,       /* verbs devices with Ethernet links, outside of the clouds */
    FABRIC_GVNIC,      /* Google's virtual NIC, without GPUDirect */
    FABRIC_ETHERNET,   /* nothing but plain interfaces */
    FABRIC_KIND_N,
};

/** Who reads. */
enum fabric_view {
    FABRIC_VIEW_JOB,   /* who will use the devices: they need their files in /dev */
    FABRIC_VIEW_AGENT, /* the agent, which its unit gives no devices */
};

/** What a verbs device is linked with. */
enum fabric_link {
    FABRIC_LINK_EFA, /* the kernel says "Unspecified", and its driver is efa */
    FABRIC_LINK_INFINIBAND,
    FABRIC_LINK_ETHERNET,
};

/** A verbs device, by its first port. */
struct fabric_device {
    char name[FABRIC_NAME_MAX]; /* as in /sys/class/infiniband */
    enum fabric_link link;
    bool is_active;               /* its port is */
    unsigned gbit;                /* rate of the port, Gbit/s; 0: not said */
    char subnet[FABRIC_NAME_MAX]; /* InfiniBand: prefix of its first GID, "fe80:0000:0000:0000" */
};

/** A network interface that has a device; bridges, tunnels and the loopback are left out. */
struct fabric_nic {
    char name[FABRIC_NAME_MAX];
    char driver[FABRIC_NAME_MAX]; /* "ena", "gve", "mlx5_core" */
};

/** Something that was found, and what says so. */
struct fabric_claim {
    char what[FABRIC_NAME_MAX];   /* "fabric", "gpus", "place" */
    char value[FABRIC_PATH_MAX];  /* what is claimed */
    char source[FABRIC_PATH_MAX]; /* the file that says so, or the metadata service */
};

struct fabric_facts {
    enum fabric_kind kind;
    enum metadata_cloud cloud;
    struct metadata_place place;
    char gpu[FABRIC_PATH_MAX]; /* model of the first GPU; "": none, or not known */
    unsigned n_gpus;
    unsigned n_cpus;
    struct fabric_device devices[FABRIC_DEVICES_MAX];
    size_t n_devices;
    struct fabric_nic nics[FABRIC_NICS_MAX];
    size_t n_nics;
    bool has_verbs_files;           /* /dev/infiniband is there, or not needed */
    char plugin[FABRIC_PATH_MAX];   /* file of the NCCL net plugin of this fabric; "": not found */
    char topology[FABRIC_PATH_MAX]; /* topology file for NCCL that the image has; "": none */
    char tuner[FABRIC_PATH_MAX];    /* configuration of the plugin's tuner; "": none */
    char checker[FABRIC_PATH_MAX];  /* configuration of Google's checker of settings; "": none */
    char fault[FABRIC_PATH_MAX]; /* why the metadata are not known; "": they are, or there are none
                                  */
    struct fabric_claim claims[FABRIC_CLAIMS_MAX];
    size_t n_claims;
};

/** fabric_kind_names - "efa", "infiniband", "gce-rdma", "tcpxo", "tcpx", "roce", "gvnic",
 * "ethernet". */
extern const char *const fabric_kind_names[];

/** fabric_kind_parse() - the kind of that name; FABRIC_KIND_N: there is none. */
enum fabric_kind fabric_kind_parse(const char *name);

/** fabric_kind_is_fast() - is it more than an ordinary network? */
bool fabric_kind_is_fast(enum fabric_kind kind);

/** fabric_kind_is_verbs() - does NCCL itself use it, by its transport IB? */
bool fabric_kind_is_verbs(enum fabric_kind kind);

/** fabric_kind_has_plugin() - does NCCL need a plugin for it? */
bool fabric_kind_has_plugin(enum fabric_kind kind);

/**
 * fabric_device_serves() - is the device one of the fabric's?
 *
 * It is active, has the link of the machine's fabric, and is at least half as fast as the fastest
 * of these: slower ones are for storage or management.
 */
bool fabric_device_serves(const struct fabric_device *d, const struct fabric_facts *f);

/** fabric_count_serving() - how many devices the fabric has here, see fabric_device_serves(). */
size_t fabric_count_serving(const struct fabric_facts *f);

/**
 * fabric_read() - find out about the machine below @t
 * @ret:	always set
 * @answers:	of the metadata service; NULL: none
 */
void fabric_read(struct fabric_facts *ret, const struct tree *t, enum fabric_view view,
    const struct metadata_answers *answers);

/**
 * fabric_read_here() - find out about this machine
 * @ret:	always set; on the heap or static, it is large
 * @timeout_ms:	for asking the metadata service; asked only in a cloud
 *
 * Blocks, so for as long at most.
 */
void fabric_read_here(struct fabric_facts *ret, enum fabric_view view, unsigned timeout_ms);

/** fabric_report_make() - what others are told of it. */
void fabric_report_make(struct fabric_report *ret, const struct fabric_facts *facts);

/** fabric_format() - append the claims, one on a line, with their sources. */
void fabric_format(struct str *out, const struct fabric_facts *facts);

/*
 * What libfabric's fi_info says of this machine, where it is installed.
 *
 * EFA's device alone carries nothing: NCCL's plugin uses it by libfabric's provider efa. Whether
 * libfabric has that provider, and how many devices it sees, only libfabric knows. fi_info is its
 * own tool (Debian's libfabric-bin, or in Amazon's EFA installer). The agent never runs it.
 */

#define LIBFABRIC_TEXT_MAX    128 /* bytes of the list of providers, with its zero */
#define LIBFABRIC_DOMAINS_MAX 64

struct libfabric {
    char providers[LIBFABRIC_TEXT_MAX]; /* between commas, each once; "": none */
    unsigned n_efa;                     /* devices that the provider efa has */
};

/**
 * libfabric_parse() - read the output of fi_info
 * @ret:	always set. What is no line of fi_info is passed over
 */
void libfabric_parse(struct libfabric *ret, const char *text);

/**
 * libfabric_ask() - run fi_info, for two seconds at most
 *
 * Only from the places where packages put it, never from PATH: the variables of a job are decided
 * before its environment is.
 *
 * Return: false: it is not installed, or did not end.
 */
bool libfabric_ask(struct libfabric *ret);

/**
 * libfabric_assess() - append a line for what does not fit together: a machine with EFA whose
 * libfabric has no provider for it, or sees fewer devices than the kernel
 */
void libfabric_assess(const struct libfabric *l, const struct fabric_facts *f, struct str *out);
