/* profile.c - see profile.h. The table of fabric profiles. */
#include "train/profile/profile.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NCCL_DOCS "NCCL user guide, Environment Variables"
#define OFI       "aws-ofi-nccl, "
#define TCPX_DOCS                                                                                  \
    "GoogleCloudPlatform/container-engine-accelerators, gpudirect-tcpx/nccl-config.yaml"
#define TCPXO_DOCS "GoogleCloudPlatform/container-engine-accelerators, gpudirect-tcpxo, Jan 9, 2026"
#define GIB_DOCS   "Google, gIB plugin, /usr/local/gib/scripts/set_nccl_env.sh"

bool profile_say(char value[static PROFILE_VALUE_MAX], const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(value, PROFILE_VALUE_MAX, fmt, args);
    va_end(args);
    return true;
}

bool profile_unneeded(char note[static PROFILE_NOTE_MAX], const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(note, PROFILE_NOTE_MAX, fmt, args);
    va_end(args);
    return false;
}

/* ---- values made from the facts ------------------------------------------------------------- */

/* @text, where the file @needs was found, and else @why not. */
static bool say_if(const char *needs, const char *text, const char *why, char *value, char *note)
{
    return needs[0] != '\0' ? profile_say(value, "%s", text) : profile_unneeded(note, "%s", why);
}

static bool make_plugin(const struct fabric_facts *f, char *value, char *note)
{
    return say_if(f->plugin, f->plugin,
        "no plugin of this fabric lies where its installer puts it; NCCL looks for "
        "libnccl-net.so in the library path, and without one this is TCP",
        value, note);
}

/*
 * The library libnccl-net-ofi.so came with 1.15, the name "Libfabric" with 1.13. Where only
 * libnccl-net.so lies, the name may still be "AWS Libfabric".
 */
static bool make_ofi_net(const struct fabric_facts *f, char *value, char *note)
{
    if (!strstr(f->plugin, "libnccl-net-ofi.so"))
        return profile_unneeded(note, "%s: a name that it does not have would end the job",
            f->plugin[0] != '\0' ? "an older plugin may still be called AWS Libfabric"
                                 : "no plugin is found");
    return profile_say(value, "Libfabric");
}

static bool make_gib_net(const struct fabric_facts *f, char *value, char *note)
{
    return say_if(
        f->plugin, "gIB", "the plugin gIB is not installed: NCCL uses its own RoCE", value, note);
}

static bool make_fastsocket_net(const struct fabric_facts *f, char *value, char *note)
{
    return say_if(f->plugin, "FastSocket", "Fast Socket is not installed: NCCL's own sockets do it",
        value, note);
}

/* "=mlx5_0,mlx5_1": the devices of the fabric, exactly. */
static bool make_hca(const struct fabric_facts *f, char *value, char *note)
{
    size_t len = 0;

    for (size_t i = 0; i < f->n_devices; i++)
        if (fabric_device_serves(&f->devices[i], f) && len < PROFILE_VALUE_MAX)
            len += (size_t)snprintf(value + len, PROFILE_VALUE_MAX - len, "%s%s",
                len == 0 ? "=" : ",", f->devices[i].name);
    return len > 0 && len < PROFILE_VALUE_MAX ? true
                                              : profile_unneeded(note, "too many devices to name");
}

static bool make_topology(const struct fabric_facts *f, char *value, char *note)
{
    return say_if(f->topology, f->topology,
        "the image has no topology file: NCCL reads the machine's own", value, note);
}

static bool make_tuner(const struct fabric_facts *f, char *value, char *note)
{
    return say_if(f->tuner, f->tuner, "the tuner's configuration is not installed", value, note);
}

static bool make_tuner_plugin(const struct fabric_facts *f, char *value, char *note)
{
    return say_if(
        f->tuner, "libnccl-tuner.so", "the tuner's configuration is not installed", value, note);
}

static bool make_checker(const struct fabric_facts *f, char *value, char *note)
{
    return say_if(
        f->checker, f->checker, "the checker's configuration is not installed", value, note);
}

/* Google's machines have gVNICs: the first one is the host's, the others belong to the GPUs. */
static const struct fabric_nic *gvnic_at(const struct fabric_facts *f, size_t wanted)
{
    size_t seen = 0;

    for (size_t i = 0; i < f->n_nics; i++)
        if (strcmp(f->nics[i].driver, "gve") == 0 && seen++ == wanted)
            return &f->nics[i];
    return NULL;
}

static bool make_host_nic(const struct fabric_facts *f, char *value, char *note)
{
    const struct fabric_nic *nic = gvnic_at(f, 0);

    return nic ? profile_say(value, "%s", nic->name)
               : profile_unneeded(note, "this machine has no gVNIC");
}

static bool make_data_nics(const struct fabric_facts *f, char *value, char *note)
{
    const struct fabric_nic *nic;
    size_t len = 0;

    for (size_t i = 1; (nic = gvnic_at(f, i)) && len < PROFILE_VALUE_MAX; i++)
        len += (size_t)snprintf(
            value + len, PROFILE_VALUE_MAX - len, "%s%s", len == 0 ? "" : ",", nic->name);
    return len > 0 && len < PROFILE_VALUE_MAX
               ? true
               : profile_unneeded(note, "this machine has no gVNIC for its GPUs");
}

/* Two NICs on each of the two sockets of 52 cores; Google names the cores next to them. */
static bool make_bindings(
    const struct fabric_facts *f, const char *near, const char *far, char *value, char *note)
{
    const struct fabric_nic *nic;
    size_t len = 0;

    if (f->n_cpus != 208 || !gvnic_at(f, 4) || gvnic_at(f, 5))
        return profile_unneeded(
            note, "the cores are known for 4 NICs on 208 CPUs, and here are %u CPUs", f->n_cpus);
    for (size_t i = 1; (nic = gvnic_at(f, i)); i++)
        len += (size_t)snprintf(value + len, PROFILE_VALUE_MAX - len, "%s%s:%s",
            len == 0 ? "" : ";", nic->name, i <= 2 ? near : far);
    return true;
}

static bool make_tx_bindings(const struct fabric_facts *f, char *value, char *note)
{
    return make_bindings(f, "8-21,112-125", "60-73,164-177", value, note);
}

static bool make_rx_bindings(const struct fabric_facts *f, char *value, char *note)
{
    return make_bindings(f, "22-35,126-139", "74-87,178-191", value, note);
}

/* ---- the rows ------------------------------------------------------------------------------- */

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

#define PLUGIN_WHY                                                                                 \
    "The fabric's plugin by its path: libnccl-net.so in the library path may be another one, or "  \
    "none."
#define PIN_WHY                                                                                    \
    "Without it a plugin that fails to load leaves the job on TCP, at a tenth of the speed; with " \
    "it the job ends and says why."

/*
 * EFA. The plugin sets NCCL_BUFFSIZE, NCCL_P2P_NET_CHUNKSIZE and the rest by the machine's type,
 * and picks the provider and RDMA by itself.
 */
static const struct profile_var efa_vars[] = {
    {"NCCL_NET_PLUGIN", NULL, make_plugin, PLUGIN_WHY, NCCL_DOCS},
    {"NCCL_NET", NULL, make_ofi_net, PIN_WHY, OFI "release notes of 1.13 and 1.15; " NCCL_DOCS},
};

static const struct profile_var infiniband_vars[] = {
    {"NCCL_NET", "IB", NULL, PIN_WHY, NCCL_DOCS},
    {"NCCL_IB_HCA", NULL, make_hca,
        "The ports of the fabric, exactly; NCCL otherwise also takes those for storage or "
        "management.",
        NCCL_DOCS},
};

static const struct profile_var azure_vars[] = {
    {"NCCL_NET", "IB", NULL, PIN_WHY, NCCL_DOCS},
    {"NCCL_IB_HCA", NULL, make_hca,
        "The InfiniBand ports, exactly; the port of accelerated networking is a verbs device, too, "
        "and reaches nobody.",
        NCCL_DOCS},
    {"NCCL_TOPO_FILE", NULL, make_topology,
        "A virtual machine hides which GPU is next to which port; the image has it in a file.",
        "Microsoft Learn, Azure HPC images, topology files; " NCCL_DOCS},
};

static const struct profile_var roce_vars[] = {
    {"NCCL_NET", "IB", NULL, PIN_WHY, NCCL_DOCS},
    {"NCCL_IB_HCA", NULL, make_hca,
        "The fastest ports, exactly; a slower one in the list slows every ring.", NCCL_DOCS},
};

static const struct profile_var gib_vars[] = {
    {"NCCL_NET_PLUGIN", NULL, make_plugin, PLUGIN_WHY, NCCL_DOCS},
    {"NCCL_NET", NULL, make_gib_net, PIN_WHY, GIB_DOCS},
    {"NCCL_CROSS_NIC", "0", NULL, "Each GPU has a NIC and a rail of its own.", GIB_DOCS},
    {"NCCL_NET_GDR_LEVEL", "PIX", NULL, "Each NIC shares a PCI switch with its GPU.", GIB_DOCS},
    {"NCCL_P2P_NET_CHUNKSIZE", "131072", NULL, "As Google measured for this machine.", GIB_DOCS},
    {"NCCL_NVLS_CHUNKSIZE", "524288", NULL, "As Google measured for this machine.", GIB_DOCS},
    {"NCCL_IB_ADAPTIVE_ROUTING", "1", NULL, "The fabric spreads packets over paths.", GIB_DOCS},
    {"NCCL_IB_QPS_PER_CONNECTION", "4", NULL, "Several flows, for the fabric to spread.", GIB_DOCS},
    {"NCCL_IB_TC", "52", NULL, "The traffic class that the fabric carries RoCE in.", GIB_DOCS},
    {"NCCL_IB_FIFO_TC", "84", NULL, "The class of control messages, before data.", GIB_DOCS},
    {"NCCL_TUNER_CONFIG_PATH", NULL, make_tuner, "What the plugin's tuner decides by.", GIB_DOCS},
};

static const struct profile_var tcpxo_vars[] = {
    {"NCCL_NET_PLUGIN", NULL, make_plugin, PLUGIN_WHY, NCCL_DOCS},
    {"NCCL_SOCKET_IFNAME", NULL, make_host_nic,
        "The plugin's control connections go by the host's NIC, beside the data.", TCPXO_DOCS},
    {"NCCL_FASTRAK_CTRL_DEV", NULL, make_host_nic, "As NCCL_SOCKET_IFNAME.", TCPXO_DOCS},
    {"NCCL_FASTRAK_IFNAME", NULL, make_data_nics, "The NICs of the GPUs.", TCPXO_DOCS},
    {"NCCL_CROSS_NIC", "0", NULL, "Each GPU has a NIC and a rail of its own.", TCPXO_DOCS},
    {"NCCL_PROTO", "Simple,LL128", NULL, "What the plugin is measured with.", TCPXO_DOCS},
    {"NCCL_MIN_NCHANNELS", "4", NULL,
        "Deprecated for NCCL_MIN_CTAS, and still the name that the plugin's checker asks for.",
        TCPXO_DOCS},
    {"NCCL_TUNER_PLUGIN", NULL, make_tuner_plugin, "Chooses by Google's measurements.", TCPXO_DOCS},
    {"NCCL_TUNER_CONFIG_PATH", NULL, make_tuner, "What that tuner decides by.", TCPXO_DOCS},
    {"NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE", NULL, make_checker,
        "The plugin checks the other settings by it.", TCPXO_DOCS},
    {"NCCL_NVLSTREE_MAX_CHUNKSIZE", "131072", NULL, "What the plugin is measured with.",
        TCPXO_DOCS},
    {"NCCL_P2P_NET_CHUNKSIZE", "524288", NULL, "What the plugin is measured with.", TCPXO_DOCS},
    {"NCCL_P2P_PCI_CHUNKSIZE", "524288", NULL, "What the plugin is measured with.", TCPXO_DOCS},
    {"NCCL_P2P_NVL_CHUNKSIZE", "1048576", NULL, "What the plugin is measured with.", TCPXO_DOCS},
    {"NCCL_BUFFSIZE", "8388608", NULL, "What the plugin is measured with.", TCPXO_DOCS},
    {"NCCL_NET_GDR_LEVEL", "PIX", NULL, "Each NIC shares a PCI switch with its GPU.", TCPXO_DOCS},
    {"NCCL_NVLS_ENABLE", "1", NULL, "The plugin's tuner counts on NVLSTree.", TCPXO_DOCS},
    {"NCCL_FASTRAK_NUM_FLOWS", "2", NULL, "What the plugin is measured with.", TCPXO_DOCS},
    {"NCCL_FASTRAK_USE_SNAP", "1", NULL, "The receive data path of this machine.", TCPXO_DOCS},
    {"NCCL_FASTRAK_USE_LLCM", "1", NULL, "LL128 over the network needs it.", TCPXO_DOCS},
    {"NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL", "0", NULL, "Not used on this machine.", TCPXO_DOCS},
    {"NCCL_FASTRAK_PLUGIN_ACCEPT_TIMEOUT_MS", "600000", NULL,
        "Ranks may come late: loading a model takes minutes.", TCPXO_DOCS},
};

static const struct profile_var tcpx_vars[] = {
    {"NCCL_NET_PLUGIN", NULL, make_plugin, PLUGIN_WHY, NCCL_DOCS},
    {"NCCL_SOCKET_IFNAME", NULL, make_host_nic,
        "The plugin's control connections go by the host's NIC, beside the data.", TCPX_DOCS},
    {"NCCL_GPUDIRECTTCPX_CTRL_DEV", NULL, make_host_nic, "As NCCL_SOCKET_IFNAME.", TCPX_DOCS},
    {"NCCL_GPUDIRECTTCPX_SOCKET_IFNAME", NULL, make_data_nics, "The NICs of the GPUs.", TCPX_DOCS},
    {"NCCL_GPUDIRECTTCPX_TX_BINDINGS", NULL, make_tx_bindings,
        "Cores next to each NIC, for sending.", TCPX_DOCS},
    {"NCCL_GPUDIRECTTCPX_RX_BINDINGS", NULL, make_rx_bindings,
        "Cores next to each NIC, for receiving.", TCPX_DOCS},
    {"NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS", "500000", NULL,
        "The NIC takes so long to steer a new flow.", TCPX_DOCS},
    {"NCCL_ALGO", "Ring,Tree", NULL, "The algorithms that the plugin was built for.", TCPX_DOCS},
    {"NCCL_PROTO", "Simple", NULL, "The plugin does not carry LL and LL128.", TCPX_DOCS},
    {"NCCL_CROSS_NIC", "0", NULL, "Each pair of GPUs has a NIC and a rail of its own.", TCPX_DOCS},
    {"NCCL_NET_GDR_LEVEL", "PIX", NULL, "Each NIC shares a PCI switch with its GPUs.", TCPX_DOCS},
    {"NCCL_P2P_PXN_LEVEL", "0", NULL, "No detour by another GPU's NIC.", TCPX_DOCS},
    {"NCCL_P2P_NET_CHUNKSIZE", "524288", NULL, "What the plugin is measured with.", TCPX_DOCS},
    {"NCCL_P2P_PCI_CHUNKSIZE", "524288", NULL, "What the plugin is measured with.", TCPX_DOCS},
    {"NCCL_P2P_NVL_CHUNKSIZE", "1048576", NULL, "What the plugin is measured with.", TCPX_DOCS},
    {"NCCL_BUFFSIZE", "4194304", NULL, "What the plugin is measured with.", TCPX_DOCS},
    {"NCCL_NSOCKS_PERTHREAD", "4", NULL, "What the plugin is measured with.", TCPX_DOCS},
    {"NCCL_SOCKET_NTHREADS", "1", NULL, "What the plugin is measured with.", TCPX_DOCS},
};

static const struct profile_var gvnic_vars[] = {
    {"NCCL_NET_PLUGIN", NULL, make_plugin, PLUGIN_WHY, NCCL_DOCS},
    {"NCCL_NET", NULL, make_fastsocket_net, PIN_WHY, "google/nccl-fastsocket, net_fastsocket.cc"},
};

#define VARS(array) array, COUNT(array)

static const struct profile profiles[] = {
    {"efa", FABRIC_EFA, NULL, "Libfabric,AWS Libfabric,OFI", VARS(efa_vars)},
    {"infiniband-azure", FABRIC_INFINIBAND, "Standard_", "IB,IBext", VARS(azure_vars)},
    {"infiniband", FABRIC_INFINIBAND, NULL, "IB,IBext", VARS(infiniband_vars)},
    {"gpudirect-rdma", FABRIC_GCE_RDMA, NULL, "gIB", VARS(gib_vars)},
    {"gpudirect-tcpxo", FABRIC_TCPXO, NULL, "FasTrak", VARS(tcpxo_vars)},
    {"gpudirect-tcpx", FABRIC_TCPX, NULL, "GPUDirectTCPX", VARS(tcpx_vars)},
    {"roce", FABRIC_ROCE, NULL, "IB,IBext", VARS(roce_vars)},
    {"gvnic", FABRIC_GVNIC, NULL, "FastSocket,Socket", VARS(gvnic_vars)},
    {"sockets", FABRIC_ETHERNET, NULL, "Socket", NULL, 0},
};

const struct profile *profile_plain(void)
{
    return &profiles[COUNT(profiles) - 1];
}

const struct profile *profile_at(size_t i)
{
    return i < COUNT(profiles) ? &profiles[i] : NULL;
}

const struct profile *profile_of(const struct fabric_facts *f)
{
    const struct profile *p = profiles;

    for (size_t i = 0; i < COUNT(profiles); i++) {
        p = &profiles[i];
        if (p->kind == f->kind &&
            (!p->machine || strncmp(f->place.machine, p->machine, strlen(p->machine)) == 0))
            break;
    }
    return p;
}

const struct profile_var *profile_find(const struct profile *p, const char *name)
{
    for (size_t i = 0; i < p->n_vars; i++)
        if (strcmp(p->vars[i].name, name) == 0)
            return &p->vars[i];
    return NULL;
}

bool profile_takes(const struct profile *p, const char *network)
{
    const char *name = p->networks;

    while (*name != '\0') {
        size_t len = strcspn(name, ",");

        if (strncasecmp(name, network, len) == 0)
            return true;
        name += len + (name[len] == ',');
    }
    return false;
}

bool profile_decides(const struct profile_var *var)
{
    return strcmp(var->name, "NCCL_NET") == 0 || strcmp(var->name, "NCCL_NET_PLUGIN") == 0 ||
           strcmp(var->name, "NCCL_IB_HCA") == 0 || strstr(var->name, "IFNAME") ||
           strstr(var->name, "CTRL_DEV");
}

bool profile_make(const struct profile_var *var, const struct fabric_facts *f,
    char value[static PROFILE_VALUE_MAX], char note[static PROFILE_NOTE_MAX])
{
    value[0] = '\0';
    note[0] = '\0';
    return var->make ? var->make(f, value, note) : profile_say(value, "%s", var->value);
}
