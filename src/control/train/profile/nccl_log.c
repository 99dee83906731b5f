/* nccl_log.c - see nccl_log.h. */
#include "train/profile/nccl_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "train/profile/profile.h"

/* The newest version whose source was looked through, as a minor of NCCL 2. */
#define NCCL_VARS_NEWEST 30

/* What is known of a variable. Versions are minors of NCCL 2: 17 is 2.17. */
struct nccl_var {
    const char *name;
    unsigned since; /* the first that knows it; 0: 2.4 or before */
    unsigned until; /* the last that knows it; 0: it is still known */
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Copies text up to the end of the line, without what could move a terminal's cursor. */
static void copy(char *ret, size_t cap, const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 1 < cap; i++)
        ret[n++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : ' ';
    while (n > 0 && ret[n - 1] == ' ')
        n--;
    ret[n] = '\0';
}

/* The text after the first @words in the line; NULL: they are not in it. */
static const char *after(const char *line, size_t len, const char *words)
{
    const char *found = memmem(line, len, words, strlen(words));

    return found ? found + strlen(words) : NULL;
}

/*
 * Lines that say why a network was passed over, as they stand in NCCL (src/plugin, src/transport)
 * and in aws-ofi-nccl, of several versions. Those that say more have more weight.
 */
static const struct {
    const char *words;
    unsigned weight;
} causes[] = {
    {"NET/Plugin : No plugin found", 1},
    {"NET/Plugin: No plugin found", 1},
    {"NET/Plugin: Could not find", 1},
    {"External network plugin", 2},
    {"NET/IB : No device found", 2},
    {"Failed to initialize NET plugin", 2},
    {"NET/Plugin : Plugin load", 3},
    {"cannot open shared object file", 3},
    {"undefined symbol", 3},
    {"Failed to initialize any NET plugin", 3},
    {"NET/OFI Couldn't find any", 4},
    {"NET/OFI Unable to find", 4},
    {"NET/OFI Failed to initialize", 4},
    {"Disabling external plugins", 4},
    {"NCCL_IB_DISABLE set by environment to 1", 5},
    {"NCCL_NET set by environment to Socket", 5},
    {"Error: network ", 5},
};

static void take_cause(struct nccl_log *log, const char *line, size_t len)
{
    const char *text = after(line, len, "NCCL INFO ");

    if (!text)
        text = after(line, len, "NCCL WARN ");
    if (!text)
        return;
    len -= (size_t)(text - line);
    for (size_t i = 0; i < COUNT(causes); i++)
        if (causes[i].weight >= log->cause_weight && after(text, len, causes[i].words)) {
            copy(log->cause, sizeof(log->cause), text, len);
            log->cause_weight = causes[i].weight;
        }
}

/* "NET/OFI Selected provider is efa, fabric is efa (found 4 nics)"; older ones: "Selected
 * Provider". */
static void take_provider(struct nccl_log *log, const char *line, size_t len)
{
    const char *text = after(line, len, "NET/OFI Selected ");
    const char *end = line + len;
    const char *found;

    if (!text || end - text < 12)
        return;
    text += strlen("provider is ");
    if (text >= end)
        return;
    found = after(text, (size_t)(end - text), "(found ");
    copy(log->provider, sizeof(log->provider), text, strcspn(text, ", ("));
    if (found)
        log->n_nics = (unsigned)strtoul(found, NULL, 10);
}

/* "NET/Socket : Using [0]weft0:10.42.0.7<0> [1]eth0:10.0.0.7<0>": the names of the interfaces. */
static void take_sockets(struct nccl_log *log, const char *text, size_t len)
{
    const char *at = after(text, len, "NET/Socket : Using ");
    size_t n = 0;

    if (!at)
        return;
    while ((at = strchr(at, ']'))) {
        size_t name = strcspn(++at, ":");

        if (n + name + 2 > sizeof(log->sockets))
            break;
        if (n > 0)
            log->sockets[n++] = ',';
        memcpy(log->sockets + n, at, name);
        n += name;
        at += name;
    }
    log->sockets[n] = '\0';
}

bool nccl_log_take(struct nccl_log *log, const char *line, size_t len)
{
    char text[1024];
    const char *found;

    copy(text, sizeof(text), line, len);
    len = strlen(text);
    if (++log->n_lines > NCCL_LOG_LINES_MAX)
        return false;
    found = after(text, len, "NCCL version ");
    if (found)
        copy(log->version, sizeof(log->version), found, strcspn(found, "+ "));
    take_provider(log, text, len);
    take_sockets(log, text, len);
    take_cause(log, text, len);
    found = after(text, len, "NCCL INFO Using network ");
    if (found)
        copy(log->network, sizeof(log->network), found, strlen(found));
    return log->network[0] == '\0';
}

enum nccl_log_verdict nccl_log_assess(const struct nccl_log *log, const struct profile *wanted,
    size_t n_devices, const char *interface, struct str *out)
{
    bool uses_sockets = strcmp(log->network, "Socket") == 0 && log->sockets[0] != '\0';

    if (log->network[0] == '\0') {
        str_addf(out, "NCCL has not said which network it uses%s%s",
            log->cause[0] != '\0' ? "; its last word on that: " : "", log->cause);
        return NCCL_LOG_UNKNOWN;
    }
    if (!profile_takes(wanted, log->network)) {
        str_addf(out, "the fabric profile %s was wanted, and NCCL uses %s: %s", wanted->name,
            log->network, log->cause[0] != '\0' ? log->cause : "its log does not say why");
        return NCCL_LOG_OTHER;
    }
    if (uses_sockets && interface && strcmp(log->sockets, interface) != 0) {
        str_addf(out,
            "NCCL was to use %s, and uses sockets on %s, whose addresses other nodes may not reach",
            interface, log->sockets);
        return NCCL_LOG_OTHER;
    }
    str_addf(out, "NCCL uses %s%s%s, as the fabric profile %s wants", log->network,
        uses_sockets ? " on " : "", uses_sockets ? log->sockets : "", wanted->name);
    if (log->provider[0] != '\0')
        str_addf(out, ", by libfabric's %s", log->provider);
    if (log->n_nics > 0 && n_devices > 0 && log->n_nics < n_devices)
        str_addf(out, "; but with %u of %zu devices", log->n_nics, n_devices);
    return NCCL_LOG_WANTED;
}

/* ==== NCCL's variables ======================================================================= */

/*
 * The table was made from NCCL's source: for the last release of each minor from 2.4 to 2.30, the
 * names that src/ reads from the environment. What was removed before 2.4, and when documented
 * variables came, is from the user guide, Environment Variables.
 */

/* Sorted by name. */
static const struct nccl_var vars[] = {
    {"NCCL_AGG_ALLOC_MODE", 10, 12},
    {"NCCL_AGG_CHANNEL_SIZE", 10, 19},
    {"NCCL_ALGO", 5, 0},
    {"NCCL_ALLGATHERV_ENABLE", 29, 0},
    {"NCCL_ALLOC_P2P_NET_LL_BUFFERS", 14, 0},
    {"NCCL_BUFFSIZE", 0, 0},
    {"NCCL_CGA_CLUSTER_SIZE", 15, 0},
    {"NCCL_CHECKS_DISABLE", 0, 0},
    {"NCCL_CHECK_MODE", 29, 0},
    {"NCCL_CHECK_POINTERS", 0, 0},
    {"NCCL_CHUNK_SIZE", 12, 0},
    {"NCCL_COLLNET_ENABLE", 6, 0},
    {"NCCL_COLLNET_NODE_THRESHOLD", 9, 0},
    {"NCCL_COMM_BLOCKING", 14, 0},
    {"NCCL_COMM_ID", 0, 0},
    {"NCCL_COMM_SHRINK_SHARE_RESOURCES", 27, 0},
    {"NCCL_COMM_SPLIT_SHARE_RESOURCES", 18, 0},
    {"NCCL_CONF_FILE", 23, 0},
    {"NCCL_CONNECT_ROUND_MAX_PEERS", 19, 0},
    {"NCCL_CREATE_THREAD_CONTEXT", 13, 29},
    {"NCCL_CROSS_NIC", 5, 0},
    {"NCCL_CTA_POLICY", 27, 0},
    {"NCCL_CUMEM_ENABLE", 18, 0},
    {"NCCL_CUMEM_HOST_ENABLE", 23, 0},
    {"NCCL_DEBUG", 0, 0},
    {"NCCL_DEBUG_FILE", 0, 0},
    {"NCCL_DEBUG_SUBSYS", 0, 0},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT", 26, 0},
    {"NCCL_DEBUG_TIMESTAMP_LEVELS", 26, 0},
    {"NCCL_DEV_API_JIT", 30, 0},
    {"NCCL_DISABLE_MEM_MANAGER", 29, 0},
    {"NCCL_DMABUF_ENABLE", 13, 0},
    {"NCCL_ELASTIC_BUFFER_REGISTER", 30, 0},
    {"NCCL_ENABLE_VERSION_CHECK", 29, 0},
    {"NCCL_ENV_PLUGIN", 28, 0},
    {"NCCL_GDAKI_USE_RELIABLE_DB", 29, 0},
    {"NCCL_GDRCOPY_ENABLE", 9, 0},
    {"NCCL_GDRCOPY_FIFO_ENABLE", 9, 0},
    {"NCCL_GDRCOPY_FLUSH_ENABLE", 9, 0},
    {"NCCL_GDRCOPY_SYNC_ENABLE", 12, 0},
    {"NCCL_GDRCOPY_TAIL_ENABLE", 9, 11},
    {"NCCL_GDR_FLUSH_DISABLE", 0, 0},
    {"NCCL_GIN_CONNECTION_RAIL", 30, 0},
    {"NCCL_GIN_COUNTER_POOL_SIZE", 28, 29},
    {"NCCL_GIN_ENABLE", 28, 0},
    {"NCCL_GIN_ERROR_QUERY_SEC", 28, 0},
    {"NCCL_GIN_EXCLUSIVE_CONTEXTS", 29, 29},
    {"NCCL_GIN_GDAKI_MAX_DEST_RD_ATOMIC", 30, 0},
    {"NCCL_GIN_GDAKI_MAX_QP_RD_ATOMIC", 30, 0},
    {"NCCL_GIN_GDAKI_NIC_HANDLER", 28, 0},
    {"NCCL_GIN_GDAKI_QP_DEPTH", 28, 0},
    {"NCCL_GIN_IB_TC", 30, 0},
    {"NCCL_GIN_NCONNECTIONS", 29, 0},
    {"NCCL_GIN_NCONTEXTS", 28, 29},
    {"NCCL_GIN_PLUGIN", 29, 0},
    {"NCCL_GIN_PLUGIN_REF_COUNT", 29, 0},
    {"NCCL_GIN_PROXY_QUEUE_SIZE", 28, 0},
    {"NCCL_GIN_SIGNAL_POOL_SIZE", 28, 29},
    {"NCCL_GIN_TYPE", 28, 0},
    {"NCCL_GRAPH_DUMP_FILE", 6, 0},
    {"NCCL_GRAPH_DUMP_FILE_RANK", 6, 0},
    {"NCCL_GRAPH_FILE", 6, 0},
    {"NCCL_GRAPH_HELPER_DISABLE", 11, 0},
    {"NCCL_GRAPH_MIXING_SUPPORT", 13, 0},
    {"NCCL_GRAPH_REGISTER", 11, 0},
    {"NCCL_GRAPH_STREAM_ORDERING", 30, 0},
    {"NCCL_GROUP_CUDA_STREAM", 0, 0},
    {"NCCL_HOSTID", 5, 0},
    {"NCCL_IBVERBS_LIB", 30, 0},
    {"NCCL_IB_ADAPTIVE_ROUTING", 16, 0},
    {"NCCL_IB_ADDR_FAMILY", 21, 0},
    {"NCCL_IB_ADDR_RANGE", 21, 0},
    {"NCCL_IB_AR_THRESHOLD", 6, 0},
    {"NCCL_IB_CUDA_SUPPORT", 0, 3},
    {"NCCL_IB_DATA_DIRECT", 27, 0},
    {"NCCL_IB_DEVICE_PCI_ORDER", 29, 0},
    {"NCCL_IB_DISABLE", 0, 0},
    {"NCCL_IB_ECE_ENABLE", 23, 0},
    {"NCCL_IB_FIFO_TC", 22, 0},
    {"NCCL_IB_GDR_LEVEL", 3, 3},
    {"NCCL_IB_GID_INDEX", 0, 0},
    {"NCCL_IB_HCA", 0, 0},
    {"NCCL_IB_MERGE_NICS", 20, 0},
    {"NCCL_IB_MERGE_VFS", 18, 0},
    {"NCCL_IB_MQP_RETRY_ALL", 24, 0},
    {"NCCL_IB_MQP_RETRY_CNT", 24, 0},
    {"NCCL_IB_MQP_RETRY_SLEEP_MSEC", 24, 0},
    {"NCCL_IB_OOO_RQ", 30, 0},
    {"NCCL_IB_PCI_RELAXED_ORDERING", 12, 0},
    {"NCCL_IB_PKEY", 8, 0},
    {"NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", 29, 0},
    {"NCCL_IB_QPS_PER_CONNECTION", 10, 0},
    {"NCCL_IB_QUERY_PORT_SPEED", 30, 0},
    {"NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME", 29, 0},
    {"NCCL_IB_RESILIENCY_PORT_FAILOVER", 29, 0},
    {"NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS", 29, 0},
    {"NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY", 29, 0},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY", 30, 0},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT", 30, 0},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL", 30, 0},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE", 30, 0},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE", 30, 0},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT", 30, 0},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX", 30, 0},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY", 30, 0},
    {"NCCL_IB_RETRY_CNT", 0, 0},
    {"NCCL_IB_RETURN_ASYNC_EVENTS", 23, 0},
    {"NCCL_IB_ROCE_VERSION_NUM", 21, 0},
    {"NCCL_IB_ROUTABLE_FLID_GID_INDEX", 22, 0},
    {"NCCL_IB_SL", 0, 0},
    {"NCCL_IB_SPLIT_DATA_ON_QPS", 18, 0},
    {"NCCL_IB_SUBNET_AWARE_ROUTING", 30, 0},
    {"NCCL_IB_SUBNET_PREFIX_LEN", 30, 0},
    {"NCCL_IB_TC", 0, 0},
    {"NCCL_IB_TIMEOUT", 0, 0},
    {"NCCL_IB_USE_INLINE", 8, 0},
    {"NCCL_IB_WARN_RAIL_LOCAL", 24, 0},
    {"NCCL_IGNORE_COLLNET_MISMATCH", 30, 0},
    {"NCCL_IGNORE_CPU_AFFINITY", 0, 0},
    {"NCCL_IGNORE_DISABLED_P2P", 12, 0},
    {"NCCL_IGNORE_NET_MISMATCH", 30, 0},
    {"NCCL_IPC_USE_ABSTRACT_SOCKET", 29, 0},
    {"NCCL_L1_SHARED_MEMORY_CARVEOUT", 12, 0},
    {"NCCL_LAUNCH_MODE", 0, 0},
    {"NCCL_LAUNCH_ORDER_IMPLICIT", 26, 0},
    {"NCCL_LAUNCH_RACE_FATAL", 26, 0},
    {"NCCL_LEGACY_CUDA_REGISTER", 24, 0},
    {"NCCL_LL128_BUFFSIZE", 7, 0},
    {"NCCL_LL128_C2C", 27, 0},
    {"NCCL_LL128_NTHREADS", 5, 0},
    {"NCCL_LL_BUFFSIZE", 7, 0},
    {"NCCL_LL_THRESHOLD", 0, 4},
    {"NCCL_LOCAL_REGISTER", 19, 0},
    {"NCCL_LSA_TEAM_SIZE", 29, 0},
    {"NCCL_MAX_CTAS", 17, 0},
    {"NCCL_MAX_NCHANNELS", 5, 0},
    {"NCCL_MAX_NRINGS", 0, 0},
    {"NCCL_MAX_P2P_NCHANNELS", 7, 0},
    {"NCCL_MEM_SYNC_DOMAIN", 16, 0},
    {"NCCL_MIN_CTAS", 17, 0},
    {"NCCL_MIN_NCHANNELS", 5, 0},
    {"NCCL_MIN_NRINGS", 0, 0},
    {"NCCL_MIN_P2P_NCHANNELS", 7, 0},
    {"NCCL_MLOPART_RDMA_ENABLE", 30, 0},
    {"NCCL_MNNVL", 20, 20},
    {"NCCL_MNNVL_CLIQUE_ID", 23, 0},
    {"NCCL_MNNVL_CROSS_CLIQUE", 30, 0},
    {"NCCL_MNNVL_ENABLE", 21, 0},
    {"NCCL_MNNVL_RAIL_PER_HOST", 28, 0},
    {"NCCL_MNNVL_SCATTER_NETS_ENABLE", 27, 0},
    {"NCCL_MNNVL_UUID", 25, 0},
    {"NCCL_MULTI_RANK_GPU_ENABLE", 30, 0},
    {"NCCL_MULTI_SEGMENT_REGISTER", 29, 0},
    {"NCCL_NCHANNELS_PER_NET_PEER", 12, 0},
    {"NCCL_NET", 10, 0},
    {"NCCL_NETDEVS_POLICY", 28, 0},
    {"NCCL_NET_DISABLE_INTRA", 12, 0},
    {"NCCL_NET_FORCE_FLUSH", 15, 0},
    {"NCCL_NET_FORCE_MERGE", 24, 0},
    {"NCCL_NET_GDR_C2C", 26, 0},
    {"NCCL_NET_GDR_LEVEL", 0, 0},
    {"NCCL_NET_GDR_MLOPART", 30, 0},
    {"NCCL_NET_GDR_READ", 0, 0},
    {"NCCL_NET_MERGE_LEVEL", 24, 0},
    {"NCCL_NET_MERGE_POLICY", 30, 0},
    {"NCCL_NET_OPTIONAL_RECV_COMPLETION", 24, 0},
    {"NCCL_NET_OVERHEAD", 18, 0},
    {"NCCL_NET_PLUGIN", 11, 0},
    {"NCCL_NET_PLUGIN_REF_COUNT", 26, 0},
    {"NCCL_NET_SHARED_BUFFERS", 8, 0},
    {"NCCL_NET_SHARED_COMMS", 12, 0},
    {"NCCL_NO_CACHE", 29, 0},
    {"NCCL_NSOCKS_PERTHREAD", 0, 0},
    {"NCCL_NTHREADS", 0, 0},
    {"NCCL_NUM_RMA_CTX", 29, 0},
    {"NCCL_NVB_DISABLE", 9, 0},
    {"NCCL_NVB_PRECONNECT", 9, 0},
    {"NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE", 27, 0},
    {"NCCL_NVLSTREE_MAX_CHUNKSIZE", 20, 0},
    {"NCCL_NVLS_CHUNKSIZE", 21, 0},
    {"NCCL_NVLS_ENABLE", 17, 0},
    {"NCCL_NVLS_NCHANNELS", 17, 0},
    {"NCCL_NVTX_DISABLE", 28, 0},
    {"NCCL_OOB_NET_ENABLE", 23, 0},
    {"NCCL_OOB_NET_IFNAME", 23, 0},
    {"NCCL_P2P_DIRECT_DISABLE", 12, 0},
    {"NCCL_P2P_DISABLE", 0, 0},
    {"NCCL_P2P_EPOCH_ENABLE", 29, 0},
    {"NCCL_P2P_LEVEL", 0, 0},
    {"NCCL_P2P_LL_THRESHOLD", 14, 0},
    {"NCCL_P2P_MAX_PEERS", 30, 0},
    {"NCCL_P2P_NET_CHUNKSIZE", 14, 0},
    {"NCCL_P2P_NVL_CHUNKSIZE", 16, 0},
    {"NCCL_P2P_PCI_CHUNKSIZE", 16, 0},
    {"NCCL_P2P_PER_CHANNEL_NET_BW", 29, 0},
    {"NCCL_P2P_PXN_LEVEL", 12, 0},
    {"NCCL_P2P_READ_ENABLE", 7, 0},
    {"NCCL_P2P_SCHEDULE_GROUP_SIZE", 28, 0},
    {"NCCL_P2P_USE_CUDA_MEMCPY", 13, 0},
    {"NCCL_PAT_ENABLE", 23, 0},
    {"NCCL_PROFILER_PLUGIN", 23, 0},
    {"NCCL_PROGRESS_APPENDOP_FREQ", 16, 0},
    {"NCCL_PROTO", 5, 0},
    {"NCCL_PROXY_APPEND_BATCH_SIZE", 16, 0},
    {"NCCL_PROXY_CPUSET", 28, 0},
    {"NCCL_PROXY_DUMP_SIGNAL", 14, 0},
    {"NCCL_PROXY_PROFILE", 12, 22},
    {"NCCL_PXN_C2C", 27, 0},
    {"NCCL_PXN_DISABLE", 12, 0},
    {"NCCL_RAS_ADDR", 24, 0},
    {"NCCL_RAS_ENABLE", 24, 0},
    {"NCCL_RAS_TIMEOUT_FACTOR", 24, 0},
    {"NCCL_REPORT_CONNECT_PROGRESS", 19, 0},
    {"NCCL_RINGS", 0, 4},
    {"NCCL_RMA_DISABLE", 30, 0},
    {"NCCL_RMA_PLUGIN", 30, 0},
    {"NCCL_RMA_PLUGIN_REF_COUNT", 30, 0},
    {"NCCL_RMA_PROXY_DUMP_SIGNAL", 29, 0},
    {"NCCL_RMA_PROXY_QUEUE_SIZE", 29, 0},
    {"NCCL_RUNTIME_CONNECT", 22, 0},
    {"NCCL_SET_CPU_STACK_SIZE", 28, 0},
    {"NCCL_SET_STACK_SIZE", 9, 0},
    {"NCCL_SET_THREAD_NAME", 12, 0},
    {"NCCL_SHADOW_MEMPOOL_MAX_SIZE", 30, 0},
    {"NCCL_SHARED_BUFF_COUNT", 8, 8},
    {"NCCL_SHM_DISABLE", 0, 0},
    {"NCCL_SHM_LOCALITY", 13, 0},
    {"NCCL_SHM_MEMCPY_MODE", 13, 29},
    {"NCCL_SHM_USE_CUDA_MEMCPY", 13, 29},
    {"NCCL_SINGLE_PROC_MEM_REG_ENABLE", 28, 0},
    {"NCCL_SINGLE_RING_THRESHOLD", 1, 2},
    {"NCCL_SOCKET_FAMILY", 0, 0},
    {"NCCL_SOCKET_IFNAME", 0, 0},
    {"NCCL_SOCKET_INLINE", 27, 0},
    {"NCCL_SOCKET_MAGIC", 30, 0},
    {"NCCL_SOCKET_MIN_TASKSIZE", 27, 0},
    {"NCCL_SOCKET_NTHREADS", 0, 0},
    {"NCCL_SOCKET_POLL_TIMEOUT_MSEC", 29, 0},
    {"NCCL_SOCKET_RCVBUF", 27, 0},
    {"NCCL_SOCKET_RETRY_CNT", 24, 0},
    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", 24, 0},
    {"NCCL_SOCKET_SNDBUF", 27, 0},
    {"NCCL_SYM_CE_THRESHOLD", 29, 0},
    {"NCCL_SYM_CTAS", 27, 0},
    {"NCCL_SYM_GIN_KERNELS_ENABLE", 29, 0},
    {"NCCL_SYM_KERNEL", 27, 0},
    {"NCCL_SYM_NOWIN_ENABLE", 29, 0},
    {"NCCL_SYM_REUSE_SYSMEM_HANDLES", 30, 0},
    {"NCCL_SYM_RS_GIN_CHUNK_SIZE", 30, 0},
    {"NCCL_SYM_TMA_ENABLE", 30, 0},
    {"NCCL_THREAD_THRESHOLD", 0, 4},
    {"NCCL_THREAD_THRESHOLDS", 5, 0},
    {"NCCL_TOPO_DUMP_FILE", 6, 0},
    {"NCCL_TOPO_DUMP_FILE_RANK", 6, 0},
    {"NCCL_TOPO_FILE", 6, 0},
    {"NCCL_TOPO_SPLIT_MLOPART", 30, 0},
    {"NCCL_TREE_THRESHOLD", 0, 4},
    {"NCCL_TUNER_PLUGIN", 19, 0},
    {"NCCL_UID_STAGGER_RATE", 23, 0},
    {"NCCL_UID_STAGGER_THRESHOLD", 23, 0},
    {"NCCL_UNPACK_DOUBLE_NCHANNELS", 22, 0},
    {"NCCL_WARN_ENABLE_DEBUG_INFO", 19, 0},
    {"NCCL_WIN_ENABLE", 27, 0},
    {"NCCL_WIN_STRIDE", 27, 0},
    {"NCCL_WORK_ARGS_BYTES", 22, 0},
    {"NCCL_WORK_FIFO_BYTES", 22, 0},
    {"NCCL_WORK_FIFO_DEPTH", 13, 21},
};

/* Names from guides, or from old versions, and what does what they are thought to do. */
static const struct {
    const char *name;
    const char *instead;
} replaced[] = {
    {"NCCL_TREE_THRESHOLD", "it was the size below which trees are used; leave the choice to NCCL, "
                            "or set NCCL_ALGO"},
    {"NCCL_LL_THRESHOLD", "leave the choice to NCCL, or set NCCL_PROTO"},
    {"NCCL_SINGLE_RING_THRESHOLD", "leave the choice to NCCL"},
    {"NCCL_IB_CUDA_SUPPORT", "NCCL_NET_GDR_LEVEL"},
    {"NCCL_IB_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"},
    {"NCCL_TIMEOUT", "init_process_group(timeout=...) of torch"},
    {"NCCL_BLOCKING_WAIT", "TORCH_NCCL_BLOCKING_WAIT, which is torch's"},
    {"NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING, which is torch's"},
    {"NCCL_MIN_CHANNELS", "NCCL_MIN_CTAS"},
    {"NCCL_MAX_CHANNELS", "NCCL_MAX_CTAS"},
    {"NCCL_DYNAMIC_CHUNK_SIZE", "it is of Google's own builds of NCCL only"},
};

/* Prefixes and names that plugins read from the same environment. */
static const struct {
    const char *prefix;
    const char *owner;
} owners[] = {
    {"NCCL_GPUDIRECTTCPX_", "GPUDirect-TCPX"},
    {"NCCL_FASTRAK_", "GPUDirect-TCPXO"},
    {"NCCL_SHIMNET_", "GPUDirect-TCPXO"},
    {"NCCL_GPUVIZ_", "GPUDirect-TCPXO"},
    {"NCCL_TUNER_CONFIG_PATH", "Google's tuner"},
    {"NCCL_TESTS_", "nccl-tests"},
    {"NCCL_PLUGIN_P2P", "nccl-rdma-sharp-plugins"},
    {"NCCL_SHARP_", "nccl-rdma-sharp-plugins"},
    {"NCCL_UCX_", "nccl-rdma-sharp-plugins"},
    {"NCCL_IBEXT_", "nccl-rdma-sharp-plugins"},
    {"NCCL_FASTSOCKET_", "Fast Socket"},
    {"NCCL_LIB_DIR", "Google's scripts"},
    {"NCCL_HOME", "builds"},
    {"NCCL_ROOT", "builds"},
    {"NCCL_VERSION", "container images"},
};

static int nccl_vars_compare(const void *name, const void *var)
{
    return strcmp(name, ((const struct nccl_var *)var)->name);
}

/* The plugin that knows a variable which NCCL does not; NULL: none known. */
static const char *nccl_var_owner(const char *name)
{
    for (size_t i = 0; i < COUNT(owners); i++)
        if (strncmp(owners[i].prefix, name, strlen(owners[i].prefix)) == 0)
            return owners[i].owner;
    return NULL;
}

/* ---- judging -------------------------------------------------------------------------------- */

/* Values that do harm, or are not needed any more. A value of NULL stands for any. */
static const struct {
    const char *name;
    const char *value;
    enum nccl_verdict verdict;
    const char *note;
} values[] = {
    {"NCCL_NET", "GoogleFastSocket", NCCL_VERDICT_NOTHING,
        "no plugin is called so, and NCCL ends when NCCL_NET names none: this one is FastSocket"},
    {"NCCL_MIN_NCHANNELS", NULL, NCCL_VERDICT_REMARK,
        "deprecated since NCCL 2.17 for NCCL_MIN_CTAS"},
    {"NCCL_MAX_NCHANNELS", NULL, NCCL_VERDICT_REMARK,
        "deprecated since NCCL 2.17 for NCCL_MAX_CTAS"},
    {"NCCL_P2P_LEVEL", NULL, NCCL_VERDICT_REMARK,
        "NCCL finds by itself how far apart two GPUs may be and still reach each other directly; a "
        "lower level moves their traffic to shared memory, a higher one may be slower or fail"},
    {"NCCL_CROSS_NIC", "0", NCCL_VERDICT_REMARK,
        "rings and trees keep to one NIC, for networks with a rail for each; left to itself NCCL "
        "crosses where it is better"},
    {"NCCL_CROSS_NIC", "1", NCCL_VERDICT_REMARK,
        "rings and trees may go from one NIC to another, which is slow or cut off where each NIC "
        "has a rail of its own"},
    {"NCCL_SHM_DISABLE", "1", NCCL_VERDICT_REMARK,
        "shared memory is used only where GPUs cannot reach each other directly; without it that "
        "traffic goes over the network"},
    {"FI_PROVIDER", "efa", NCCL_VERDICT_REMARK,
        "aws-ofi-nccl takes EFA by itself where there is one; where there is none, this leaves it "
        "no provider"},
    {"FI_EFA_USE_DEVICE_RDMA", "1", NCCL_VERDICT_REMARK,
        "libfabric 1.18 and aws-ofi-nccl 1.7 use RDMA by themselves where the device can; 1 ends "
        "the job where it cannot"},
    {"FI_EFA_TX_MIN_CREDITS", NULL, NCCL_VERDICT_NOTHING,
        "libfabric's provider efa has no such setting"},
    {"FI_EFA_FORK_SAFE", NULL, NCCL_VERDICT_REMARK, "aws-ofi-nccl sets it by itself"},
    {"RDMAV_FORK_SAFE", NULL, NCCL_VERDICT_REMARK,
        "aws-ofi-nccl advises against it: on newer kernels it can break things"},
};

static enum nccl_verdict assess_value(
    const char *name, const char *value, char note[static NCCL_NOTE_MAX])
{
    for (size_t i = 0; i < COUNT(values); i++)
        if (strcmp(values[i].name, name) == 0 &&
            (!values[i].value || strcmp(values[i].value, value) == 0)) {
            (void)snprintf(note, NCCL_NOTE_MAX, "%s", values[i].note);
            return values[i].verdict;
        }
    return NCCL_VERDICT_FINE;
}

/* The sentence about a variable that does nothing. */
static enum nccl_verdict nothing(
    const char *name, char note[static NCCL_NOTE_MAX], const char *fmt, unsigned minor)
{
    int len = snprintf(note, NCCL_NOTE_MAX, fmt, minor);

    for (size_t i = 0; i < COUNT(replaced) && len > 0 && len < NCCL_NOTE_MAX; i++)
        if (strcmp(replaced[i].name, name) == 0)
            (void)snprintf(
                note + len, NCCL_NOTE_MAX - (size_t)len, "; instead: %s", replaced[i].instead);
    return NCCL_VERDICT_NOTHING;
}

enum nccl_verdict nccl_var_assess(
    const char *name, const char *value, unsigned nccl, char note[static NCCL_NOTE_MAX])
{
    const struct nccl_var *var = bsearch(name, vars, COUNT(vars), sizeof(*vars), nccl_vars_compare);

    if (strncmp(name, "NCCL_", 5) != 0 || nccl_var_owner(name))
        return assess_value(name, value, note);
    if (nccl == 0)
        nccl = NCCL_VARS_NEWEST;
    if (!var)
        return nothing(name, note, "no version of NCCL up to 2.%u knows it", NCCL_VARS_NEWEST);
    if (var->until != 0 && nccl > var->until)
        return nothing(name, note, "NCCL 2.%u was the last that knew it", var->until);
    if (nccl < var->since)
        return nothing(name, note, "it came with NCCL 2.%u, and the job's is older", var->since);
    return assess_value(name, value, note);
}
