/* env.c - see env.h: the table of the variables, how each one's value is found, and the plan. */
#include "train/job/env.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "fabric/fabric.h"
#include "train/profile/nccl_log.h"
#include "train/profile/profile.h"

/* ==== the fabric ============================================================================= */

/*
 * The part of a plan that follows from the machine's fabric, and what is said of
 * variables of NCCL's that the person has set and no rule is about.
 */

_Static_assert(ENV_VALUE_MAX == PROFILE_VALUE_MAX && ENV_NOTE_MAX == PROFILE_NOTE_MAX &&
                   ENV_NOTE_MAX == NCCL_NOTE_MAX,
    "values and notes have the same room everywhere");

/* Does the job use the fabric's profile? It does inside one island. */
static bool env_fabric_applies(const struct env_facts *f)
{
    return f->fabric && f->is_one_island;
}

/* Judges the value that the person has set for a variable of the profile. */
static void assess_fabric_theirs(struct env_entry *entry, const struct profile *p,
    const struct profile_var *var, const char *wanted, const char *theirs)
{
    bool is_exact = theirs[0] == '=' && strcmp(theirs + 1, wanted) == 0;

    entry->verdict = ENV_VERDICT_KEPT;
    (void)snprintf(entry->value, sizeof(entry->value), "%s", theirs);
    if (wanted[0] == '\0' || is_exact || strcasecmp(wanted, theirs) == 0)
        return;
    if (profile_decides(var))
        entry->verdict = ENV_VERDICT_HURTS;
    (void)snprintf(entry->note, sizeof(entry->note), "the fabric profile %s has %.120s here%s",
        p->name, wanted,
        profile_decides(var) ? ", and with another value the job may not use the fabric" : "");
}

/* Append the profile's variables to the plan, if the profile applies. */
static void env_fabric_add(
    struct env_plan *plan, const struct env_facts *f, env_lookup_fn lookup, void *ctx)
{
    const struct profile *p;

    if (!env_fabric_applies(f))
        return;
    p = profile_of(f->fabric);
    for (size_t i = 0; i < p->n_vars && plan->n < ENV_SIZE; i++) {
        const struct profile_var *var = &p->vars[i];
        const char *theirs = lookup(ctx, var->name);
        struct env_entry *entry = &plan->entries[plan->n++];
        char value[PROFILE_VALUE_MAX];
        bool is_needed;

        *entry = (struct env_entry){.reason = var->reason, .source = var->source};
        (void)snprintf(entry->name, sizeof(entry->name), "%s", var->name);
        is_needed = profile_make(var, f->fabric, value, entry->note);
        entry->verdict = is_needed ? ENV_VERDICT_SET : ENV_VERDICT_UNNEEDED;
        memcpy(entry->value, value, is_needed ? sizeof(value) : 1);
        if (theirs)
            assess_fabric_theirs(entry, p, var, is_needed ? value : "", theirs);
    }
}

static void assess_variable(
    struct env_plan *plan, const struct env_facts *f, const char *name, const char *value)
{
    struct env_entry *entry = env_plan_find(plan, name);
    char note[NCCL_NOTE_MAX] = "";
    enum nccl_verdict verdict = nccl_var_assess(name, value, f->nccl, note);

    if (verdict == NCCL_VERDICT_FINE || (entry && entry->note[0] != '\0') ||
        (!entry && plan->n == ENV_SIZE))
        return;
    if (!entry) {
        entry = &plan->entries[plan->n++];
        *entry = (struct env_entry){.reason = "NCCL does not say which variables it ignores.",
            .source =
                "NCCL's source, 2.4 to 2.30; NCCL user guide; aws-ofi-nccl, doc/efa-env-var.md"};
        (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
        (void)snprintf(entry->value, sizeof(entry->value), "%s", value);
    }
    entry->verdict = verdict == NCCL_VERDICT_NOTHING ? ENV_VERDICT_HURTS : ENV_VERDICT_KEPT;
    memcpy(entry->note, note, sizeof(note));
}

/* Append those of facts->theirs that do nothing or break the job. */
static void env_fabric_assess(struct env_plan *plan, const struct env_facts *f)
{
    for (char *const *theirs = f->theirs; theirs && *theirs; theirs++) {
        const char *equals = strchr(*theirs, '=');
        char name[ENV_NAME_MAX];

        if (!equals || (size_t)(equals - *theirs) >= sizeof(name))
            continue;
        (void)snprintf(name, sizeof(name), "%.*s", (int)(equals - *theirs), *theirs);
        assess_variable(plan, f, name, equals + 1);
    }
}

/* ==== the rules ============================================================================== */

/* A row of the table is all of one variable. Adding one touches the table, and docs/TRAINING.md,
 * which has the table as `weft env --table` prints it. */

/* Which kinds of command a rule is for, as bits. */
#define ENV_FOR(kind) (1u << (COMMAND_KIND_##kind))
#define ENV_FOR_ALL   ((1u << COMMAND_KIND_N) - 1)

struct env_rule {
    const char *name;
    unsigned kinds;        /* bits of ENV_FOR() */
    bool needs_command;    /* left out by `weft env`, which does not know the command */
    const char *otherwise; /* if the person has set this one, @name is unneeded; NULL: none */

    /*
     * Finds the value on this node. Returns true and sets @value, or returns false and sets
     * @note, which says why the variable is not needed. NULL: it is the @value below, everywhere.
     */
    bool (*make)(const struct env_facts *f, char value[static ENV_VALUE_MAX],
        char note[static ENV_NOTE_MAX]);

    /*
     * Does the value that the person has set break the job? If so, returns true and sets @note
     * to what it breaks. NULL: no value does.
     */
    bool (*hurts)(const struct env_facts *f, const char *theirs, char note[static ENV_NOTE_MAX]);

    const char *value;  /* the value in words, for the documentation */
    const char *reason; /* see struct env_entry */
    const char *source; /* likewise */
};

/*
 * Helper threads of NCCL, and sockets of each thread. NCCL itself uses these numbers on AWS, where
 * one TCP flow is limited as it is in a tunnel. NCCL allows at most 16 threads, and at most 64
 * sockets in all.
 */
#define NCCL_THREADS "2"
#define NCCL_SOCKETS "8"

/* Operations that PyTorch's flight recorder keeps of each rank: what its documents advise. */
#define FLIGHT_ENTRIES "2000"

/*
 * Versions as in struct env_facts. Torch 2.0 is the first whose torchrun takes --local-addr, and
 * whose torchrun works with its default options on Python 3.11.
 */
#define TORCH_2_0   200
#define TORCH_2_4   204
#define PYTHON_3_11 311

/*
 * When a node is lost, the workers of the other nodes start anew. torchrun counts that as a
 * restart, and allows none by default.
 */
#define ELASTIC_RESTARTS 100

/* ---- interfaces ----------------------------------------------------------------------------- */

static bool make_interface(const struct env_facts *f, char *value, char *note)
{
    return profile_say(value, "%s", f->interface);
}

/* Where Open MPI's processes listen: by this machine's ports, since the launcher hands its
 * variables on to all. */
static bool make_mpi_port(const struct env_facts *f, char *value, char *note)
{
    if (f->first_port == 0)
        return profile_unneeded(note, "it is not known which ports this machine's kernel chooses");
    return profile_say(value, "%u", f->first_port);
}

static bool make_mpi_ports(const struct env_facts *f, char *value, char *note)
{
    if (f->first_port == 0)
        return profile_unneeded(note, "it is not known which ports this machine's kernel chooses");
    return profile_say(value, "%u", f->last_port - f->first_port + 1);
}

static bool has_island_interface(const struct env_facts *f)
{
    return f->island_interface && f->island_interface[0] != '\0';
}

/* Where NCCL's sockets go: onto the island's private network only when all its groups are inside.
 */
static const char *nccl_interface(const struct env_facts *f)
{
    return f->is_one_island && has_island_interface(f) ? f->island_interface : f->interface;
}

static bool make_exact_interface(const struct env_facts *f, char *value, char *note)
{
    return profile_say(value, "=%s", nccl_interface(f));
}

static bool hurts_interface(const struct env_facts *f, const char *theirs, char *note)
{
    if (strcmp(theirs, f->interface) == 0)
        return false;
    (void)snprintf(note, ENV_NOTE_MAX,
        "the workers will announce addresses of \"%.60s\" instead of %s, which nodes behind "
        "another NAT cannot reach",
        theirs, f->interface);
    return true;
}

/*
 * A value without "=", such as "weft0", is a prefix for NCCL, and may match other interfaces, too.
 * That is not reported.
 */
static bool hurts_exact_interface(const struct env_facts *f, const char *theirs, char *note)
{
    const char *name = theirs[0] == '=' ? theirs + 1 : theirs;

    return strcmp(name, nccl_interface(f)) != 0 && hurts_interface(f, name, note);
}

static bool make_ucx(const struct env_facts *f, char *value, char *note)
{
    if (f->is_one_island)
        return profile_unneeded(
            note, "all nodes are in this node's island: UCX may use its fabric");
    return profile_say(value, "%s", f->interface);
}

static bool make_ib_disable(const struct env_facts *f, char *value, char *note)
{
    if (f->is_one_island)
        return profile_unneeded(
            note, "all nodes are in this node's island: NCCL may use its fabric");
    if (!f->has_infiniband)
        return profile_unneeded(note, "this machine has no InfiniBand or RoCE device");
    return profile_say(value, "1");
}

static bool hurts_ib_disable(const struct env_facts *f, const char *theirs, char *note)
{
    if (f->is_one_island && f->fabric && fabric_kind_is_verbs(f->fabric->kind) &&
        strcmp(theirs, "1") == 0) {
        (void)snprintf(note, ENV_NOTE_MAX,
            "all nodes are in this node's island, and NCCL will use TCP instead of its fabric");
        return true;
    }
    if (f->is_one_island || !f->has_infiniband || strcmp(theirs, "1") == 0)
        return false;
    (void)snprintf(note, ENV_NOTE_MAX,
        "NCCL will try InfiniBand towards nodes of other islands, and fail; right only when this "
        "job stays inside one island");
    return true;
}

/*
 * Where a fabric has a plugin of its own, NCCL takes it when it finds it in the library path, and
 * nobody outside the island is reached.
 */
static bool make_no_plugin(const struct env_facts *f, char *value, char *note)
{
    if (f->is_one_island)
        return profile_unneeded(
            note, "all nodes are in this node's island: NCCL may use its fabric");
    if (!f->fabric || !fabric_kind_has_plugin(f->fabric->kind))
        return profile_unneeded(note, "this machine's fabric has no plugin of its own");
    return profile_say(value, "none");
}

static bool make_debug(const struct env_facts *f, char *value, char *note)
{
    if (!f->nccl_log)
        return profile_unneeded(note, "%s", f->nccl_why ? f->nccl_why : "nobody reads it");
    return profile_say(value, "INFO");
}

static bool make_debug_file(const struct env_facts *f, char *value, char *note)
{
    char unused[ENV_VALUE_MAX];

    return make_debug(f, unused, note) && profile_say(value, "%s", f->nccl_log);
}

static bool make_flight_file(const struct env_facts *f, char *value, char *note)
{
    if (!f->flight)
        return profile_unneeded(note, "%s", f->flight_why ? f->flight_why : "nobody reads it");
    return profile_say(value, "%s", f->flight);
}

static bool make_flight_size(const struct env_facts *f, char *value, char *note)
{
    char unused[ENV_VALUE_MAX];

    return make_flight_file(f, unused, note) && profile_say(value, FLIGHT_ENTRIES);
}

static bool make_flight_dump(const struct env_facts *f, char *value, char *note)
{
    char unused[ENV_VALUE_MAX];

    return make_flight_file(f, unused, note) && profile_say(value, "1");
}

static bool make_plan_file(const struct env_facts *f, char *value, char *note)
{
    if (!f->plan)
        return profile_unneeded(note, "neither --plan nor --params was given");
    return profile_say(value, "%s", f->plan);
}

/* It has a name only when the command is started. */
static bool make_report(const struct env_facts *f, char *value, char *note)
{
    return profile_unneeded(note, f->rendezvous ? "weft run gives it when the command starts"
                                                : "the job does not meet at the hub");
}

/* ---- torchrun ------------------------------------------------------------------------------- */

static const char by_itself[] = "the command's own options say it";

/*
 * Does the command need the hub's meeting? If not, sets @note to why: the command or the
 * environment says where to meet, or the job has one node.
 */
static bool has_rendezvous(const struct env_facts *f, char *note)
{
    if (f->rendezvous)
        return true;
    if (f->command && f->command->says_rendezvous)
        return profile_unneeded(note, "%s", by_itself);
    if (!f->nnodes)
        return profile_unneeded(note, "nobody says --nnodes: this node works alone");
    return profile_unneeded(note, "the environment says where to meet, or the job is of one node");
}

static bool make_nnodes(const struct env_facts *f, char *value, char *note)
{
    if (f->command && f->command->nnodes)
        return profile_unneeded(note, "%s", by_itself);
    return f->nnodes ? profile_say(value, "%s", f->nnodes) : has_rendezvous(f, note);
}

static bool make_backend(const struct env_facts *f, char *value, char *note)
{
    if (f->command && f->command->backend)
        return profile_unneeded(note, "%s", by_itself);
    return has_rendezvous(f, note) && profile_say(value, "%s", f->rendezvous->backend);
}

static bool make_endpoint(const struct env_facts *f, char *value, char *note)
{
    return has_rendezvous(f, note) && profile_say(value, "%s", f->rendezvous->endpoint);
}

static bool make_id(const struct env_facts *f, char *value, char *note)
{
    if (f->command && f->command->rdzv_id)
        return profile_unneeded(note, "%s", by_itself);
    return has_rendezvous(f, note) && profile_say(value, "%s", f->rendezvous->id);
}

static bool make_conf(const struct env_facts *f, char *value, char *note)
{
    if (f->command && f->command->says_rdzv_conf)
        return profile_unneeded(note, "%s", by_itself);
    if (!has_rendezvous(f, note))
        return false;
    if (strcmp(f->rendezvous->backend, "c10d") != 0)
        return profile_unneeded(note, "only c10d may want to be its own server");
    return profile_say(value, "is_host=false");
}

/* Of a command that is no launcher it is not known whether it starts torchrun. What only torchrun
 * needs it gets where there are other nodes to meet. */
static bool may_meet(const struct env_facts *f, char *note)
{
    return !f->command || f->command->kind != COMMAND_KIND_PLAIN || has_rendezvous(f, note);
}

static bool make_local_addr(const struct env_facts *f, char *value, char *note)
{
    if (f->command && f->command->says_local_addr)
        return profile_unneeded(note, "%s", by_itself);
    if (!may_meet(f, note))
        return false;
    if (f->torch != 0 && f->torch < TORCH_2_0)
        return profile_unneeded(note,
            "torch %u.%u does not have it: rank 0 announces its host name, which the hosts file "
            "of the other nodes knows",
            f->torch / 100, f->torch % 100);
    return profile_say(value, "%s", f->address4);
}

static bool hurts_local_addr(const struct env_facts *f, const char *theirs, char *note)
{
    if (strcmp(theirs, f->address4) == 0)
        return false;
    (void)snprintf(note, ENV_NOTE_MAX,
        "rank 0 will announce \"%.60s\"; on the overlay this node is %s", theirs, f->address4);
    return true;
}

static bool make_restarts(const struct env_facts *f, char *value, char *note)
{
    if (f->command && f->command->says_max_restarts)
        return profile_unneeded(note, "%s", by_itself);
    if (!f->nnodes || !strchr(f->nnodes, ':'))
        return profile_unneeded(note, "the number of nodes is fixed");
    return profile_say(value, "%d", ELASTIC_RESTARTS);
}

/*
 * From torch 2.4 on, rank 0's torchrun serves the workers' store, and the others remember its
 * address for as long as they run. When that node is lost, their new workers still look for it.
 */
static bool make_own_store(const struct env_facts *f, char *value, char *note)
{
    if (!f->nnodes || !strchr(f->nnodes, ':'))
        return profile_unneeded(note, "the number of nodes is fixed");
    if (f->torch != 0 && f->torch < TORCH_2_4)
        return profile_unneeded(
            note, "torch %u.%u does not share it", f->torch / 100, f->torch % 100);
    return profile_say(value, "1");
}

/*
 * torchrun's own default, 0, is what fails. "9:1" is a map instead, and torchrun can read a map. It
 * redirects the standard output of local rank 9 alone, which hardly any node has. For all other
 * ranks nothing is redirected.
 */
static bool make_streams(const struct env_facts *f, char *value, char *note)
{
    if (f->command && f->command->says_streams)
        return profile_unneeded(note, "%s", by_itself);
    if (!may_meet(f, note))
        return false;
    if (f->torch == 0 || f->torch >= TORCH_2_0 || f->python < PYTHON_3_11)
        return profile_unneeded(note, "only torch 1.x on Python 3.11 or later needs it");
    return profile_say(value, "9:1");
}

/* ---- a command that is no launcher ---------------------------------------------------------- */

static bool has_rank(const struct env_facts *f, char *note)
{
    if (!f->rendezvous)
        return profile_unneeded(
            note, "nobody says --nnodes, or the environment says where rank 0 is");
    if (!f->nnodes || strspn(f->nnodes, "0123456789") != strlen(f->nnodes))
        return profile_unneeded(note, "a plain script has no elastic number of nodes");
    if (!f->ranks || !f->ranks->is_known)
        return profile_unneeded(note, "the hub keeps no ranks");
    return true;
}

static bool make_master_addr(const struct env_facts *f, char *value, char *note)
{
    return has_rank(f, note) && profile_say(value, "%s", f->ranks->address);
}

static bool make_master_port(const struct env_facts *f, char *value, char *note)
{
    if (!has_rank(f, note))
        return false;
    if (f->ranks->port == 0)
        return profile_say(value, "a port that is free when the command starts");
    return profile_say(value, "%u", f->ranks->port);
}

static bool make_rank(const struct env_facts *f, char *value, char *note)
{
    return has_rank(f, note) && profile_say(value, "%u", f->ranks->rank);
}

static bool make_world_size(const struct env_facts *f, char *value, char *note)
{
    return has_rank(f, note) && profile_say(value, "%s", f->nnodes);
}

/* ---- for the script itself ------------------------------------------------------------------ */

static bool make_network(const struct env_facts *f, char *value, char *note)
{
    return profile_say(value, "%s", f->network);
}

static bool make_node(const struct env_facts *f, char *value, char *note)
{
    return profile_say(value, "%s", f->node);
}

static bool hurts_node(const struct env_facts *f, const char *theirs, char *note)
{
    if (strcmp(theirs, f->node) == 0)
        return false;
    (void)snprintf(note, ENV_NOTE_MAX, "this node is %s", f->node);
    return true;
}

static bool has_island_lan(const struct env_facts *f, char *note)
{
    return has_island_interface(f) ||
           profile_unneeded(note,
               "not asked for, or no node of this node's island is reached over a private network");
}

static bool make_island_interface(const struct env_facts *f, char *value, char *note)
{
    return has_island_lan(f, note) && profile_say(value, "%s", f->island_interface);
}

static bool make_island_lan(const struct env_facts *f, char *value, char *note)
{
    return has_island_lan(f, note) && profile_say(value, "a file that is made before the start");
}

static bool make_job(const struct env_facts *f, char *value, char *note)
{
    if (!f->job || f->job[0] == '\0')
        return profile_unneeded(note, "no job is named");
    return profile_say(value, "%s", f->job);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define NCCL_DOCS  "NCCL user guide, Environment Variables"
#define TORCH_ARGS "torch/distributed/argparse_util.py, class env; torchrun --help"
#define TORCH_INIT "PyTorch docs, torch.distributed, Environment variable initialization"
#define TORCH_FLIGHT                                                                               \
    "PyTorch docs, PYTORCH ProcessGroupNCCL Environment Variables; "                               \
    "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp"
#define OMPI_PORTS "ompi_info --param btl tcp --level 2; docs/DATAPLANE.md"
#define OMPI_FAQ   "Open MPI FAQ, TCP; docs.open-mpi.org, 11.2.2 TCP"

/* Whatever is no launcher may start one: `sh -c`, `env`, a train.sh. torchrun reads its variables
 * in there, and a script that knows nothing of torchrun does not. */
#define BY_TORCHRUN (ENV_FOR(TORCHRUN) | ENV_FOR(PLAIN))

/* Those whose processes run on this machine alone, so what they write is found here. */
#define BY_PYTHON (ENV_FOR(PLAIN) | ENV_FOR(TORCHRUN) | ENV_FOR(ACCELERATE))

static const struct env_rule env_rules[] = {
    {"NCCL_SOCKET_IFNAME", ENV_FOR_ALL, false, NULL, make_exact_interface, hurts_exact_interface,
        "`=` and the interface; that of `--island-lan` where all of NCCL's groups are inside the "
        "island",
        "NCCL otherwise takes every interface but lo and docker, and announces private addresses; "
        "the = makes the name exact instead of a prefix.",
        NCCL_DOCS},
    {"NCCL_IB_DISABLE", ENV_FOR_ALL, false, NULL, make_ib_disable, hurts_ib_disable,
        "1, where the job crosses islands and this machine has InfiniBand or RoCE",
        "NCCL prefers a verbs device, which reaches nobody outside the island.", NCCL_DOCS},
    {"NCCL_NET_PLUGIN", ENV_FOR_ALL, false, NULL, make_no_plugin, NULL,
        "none, where the job crosses islands and this machine's fabric has a plugin",
        "NCCL prefers a plugin that it finds, and this one reaches nobody outside the island.",
        NCCL_DOCS},
    {"NCCL_SOCKET_NTHREADS", ENV_FOR_ALL, false, NULL, NULL, NULL, NCCL_THREADS,
        "NCCL tunes this by the PCI vendor of the interface, which a tunnel has not: it would use "
        "no helper thread.",
        "NCCL src/transport/net_socket.cc; " NCCL_DOCS},
    {"NCCL_NSOCKS_PERTHREAD", ENV_FOR_ALL, false, NULL, NULL, NULL, NCCL_SOCKETS,
        "For the same reason it would use one socket; several TCP flows fill a long line, and "
        "more than one core of the tunnel.",
        "NCCL src/transport/net_socket.cc; " NCCL_DOCS},
    {"NCCL_DEBUG", BY_PYTHON, true, "NCCL_DEBUG_FILE", make_debug, NULL,
        "INFO, unless you have set either of the two",
        "So NCCL says which network it takes, and why not another one; weft run reads it.",
        NCCL_DOCS},
    {"NCCL_DEBUG_FILE", BY_PYTHON, true, "NCCL_DEBUG", make_debug_file, NULL,
        "a file for each process, as above", "It keeps that out of the job's own output.",
        NCCL_DOCS},
    {"GLOO_SOCKET_IFNAME", ENV_FOR_ALL, false, NULL, make_interface, hurts_interface,
        "the interface",
        "Gloo otherwise binds to what the host name resolves to, often 127.0.1.1 or a private "
        "address. A plain name: Gloo does not know =.",
        "PyTorch docs, torch.distributed, Choosing the network interface to use"},
    {"TP_SOCKET_IFNAME", ENV_FOR_ALL, false, NULL, make_interface, hurts_interface, "the interface",
        "The same for torch.distributed.rpc (TensorPipe).",
        "torch/csrc/distributed/rpc/tensorpipe_agent.cpp"},
    {"UCX_NET_DEVICES", ENV_FOR_ALL, false, NULL, make_ucx, NULL,
        "the interface, where the job crosses islands",
        "UCX takes the fastest device of each machine, also one that the other side has not.",
        "OpenUCX docs, Frequently Asked Questions, Network capabilities"},
    {"PET_NNODES", BY_TORCHRUN, false, NULL, make_nnodes, NULL, "`--nnodes`",
        "torchrun otherwise starts a job of one node.", TORCH_ARGS},
    {"PET_RDZV_BACKEND", BY_TORCHRUN, false, NULL, make_backend, NULL,
        "c10d or etcd-v2 (`--rendezvous`)",
        "The default, static, needs the rank of each node and ends with its rank 0.", TORCH_ARGS},
    {"PET_RDZV_ENDPOINT", BY_TORCHRUN, false, NULL, make_endpoint, NULL,
        "the hub's rendezvous, on the overlay",
        "A place to meet that every node reaches and that outlives each of them.", TORCH_ARGS},
    {"PET_RDZV_ID", BY_TORCHRUN | ENV_FOR(ACCELERATE), false, NULL, make_id, NULL,
        "the present run of the job (`--job`)",
        "Nodes with the same id are one job; a job that has ended leaves its id closed.",
        TORCH_ARGS},
    {"PET_RDZV_CONF", BY_TORCHRUN, false, NULL, make_conf, NULL, "is_host=false (c10d)",
        "On the hub's own machine c10d would take itself for the server.",
        "torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py"},
    {"PET_LOCAL_ADDR", BY_TORCHRUN | ENV_FOR(ACCELERATE), false, NULL, make_local_addr,
        hurts_local_addr, "this node's address on the overlay (torch 2.0 or later)",
        "Rank 0 otherwise announces socket.getfqdn(), which other nodes may not resolve.",
        "pytorch PR 88922, issue 85300"},
    {"PET_MAX_RESTARTS", BY_TORCHRUN, true, NULL, make_restarts, NULL, "100, for an elastic job",
        "When a node is lost the workers of the others fail in their collective, and torchrun "
        "counts that as a restart; the default allows none.",
        "torch/distributed/elastic/agent/server/api.py, _invoke_run"},
    {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE", BY_TORCHRUN, true, NULL, make_own_store, NULL,
        "1, for an elastic job with torch 2.4 or later",
        "torchrun otherwise keeps one store for all rounds, on the node that was rank 0 first: the "
        "job ends with that node, although others are left.",
        "torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, next_rendezvous"},
    {"TORCH_NCCL_TRACE_BUFFER_SIZE", BY_PYTHON, true, "TORCH_FR_BUFFER_SIZE", make_flight_size,
        NULL, FLIGHT_ENTRIES ", where the job meets at the hub",
        "PyTorch's flight recorder keeps so many of the last operations of each rank with NCCL; "
        "weft run reads which one a rank has not entered.",
        TORCH_FLIGHT},
    {"TORCH_NCCL_DUMP_ON_TIMEOUT", BY_PYTHON, true, NULL, make_flight_dump, NULL, "1, likewise",
        "The recorder writes when an operation times out, before torch ends.", TORCH_FLIGHT},
    {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", BY_PYTHON, true, "TORCH_FR_DUMP_TEMP_FILE",
        make_flight_file, NULL, "a file for each rank, likewise",
        "Where the recorder writes; torch puts the rank at the end.", TORCH_FLIGHT},
    {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", BY_PYTHON, true, NULL, make_flight_file, NULL,
        "a pipe for each rank, likewise",
        "weft run asks there when the job stands still, so nobody has to wait for the time-out; "
        "torch puts the rank and .pipe at the end.",
        TORCH_FLIGHT},
    {"PET_REDIRECTS", BY_TORCHRUN, true, NULL, make_streams, NULL,
        "9:1, for torch 1.x on Python 3.11 or later",
        "torchrun of torch 1.x fails there with its own default, 0; a map that names only local "
        "rank 9 leaves all others as they are.",
        "torch/distributed/elastic/multiprocessing/api.py, Std.from_str; Python 3.11 enum"},
    {"PET_TEE", BY_TORCHRUN, true, NULL, make_streams, NULL,
        "9:1, for torch 1.x on Python 3.11 or later", "As PET_REDIRECTS.",
        "torch/distributed/elastic/multiprocessing/api.py, Std.from_str; Python 3.11 enum"},
    {"MASTER_ADDR", ENV_FOR(PLAIN), true, NULL, make_master_addr, NULL,
        "rank 0's address on the overlay",
        "Where init_process_group() meets, by env:// or by tcp:// with this address and port; "
        "known "
        "before any command of the job starts. torchrun sets its own for its workers.",
        TORCH_INIT},
    {"MASTER_PORT", ENV_FOR(PLAIN), true, "MASTER_ADDR", make_master_port, NULL,
        "a port that was free there", "As MASTER_ADDR.", TORCH_INIT},
    {"RANK", ENV_FOR(PLAIN), true, "MASTER_ADDR", make_rank, NULL, "by order of arrival, from 0",
        "One process a node, unless said otherwise; a node that starts again in the same run keeps "
        "its rank.",
        TORCH_INIT},
    {"WORLD_SIZE", ENV_FOR(PLAIN), true, "MASTER_ADDR", make_world_size, NULL, "`--nnodes`",
        "The ranks are as many as the nodes; torchrun sets its own for its workers.", TORCH_INIT},
    {"OMPI_MCA_btl_tcp_if_include", ENV_FOR(MPI), false, "OMPI_MCA_btl_tcp_if_exclude",
        make_interface, hurts_interface, "the interface",
        "Open MPI otherwise tries every interface that is up, and hangs on the unreachable ones.",
        OMPI_FAQ},
    {"OMPI_MCA_oob_tcp_if_include", ENV_FOR(MPI), false, "OMPI_MCA_oob_tcp_if_exclude",
        make_interface, hurts_interface, "the interface",
        "The same for the launcher's own connections, up to Open MPI 4.", OMPI_FAQ},
    {"OMPI_MCA_btl_tcp_port_min_v4", ENV_FOR(MPI), false, NULL, make_mpi_port, NULL,
        "the first port that the kernel chooses",
        "Ranks listen from port 1024 on otherwise, where services are. What goes between two ports "
        "that nobody has named is taken for collectives, and goes before other data.",
        OMPI_PORTS},
    {"OMPI_MCA_btl_tcp_port_range_v4", ENV_FOR(MPI), false, "OMPI_MCA_btl_tcp_port_min_v4",
        make_mpi_ports, NULL, "how many there are", "As OMPI_MCA_btl_tcp_port_min_v4.", OMPI_PORTS},
    {"OMPI_MCA_btl_tcp_port_min_v6", ENV_FOR(MPI), false, NULL, make_mpi_port, NULL,
        "the first port that the kernel chooses", "As OMPI_MCA_btl_tcp_port_min_v4.", OMPI_PORTS},
    {"OMPI_MCA_btl_tcp_port_range_v6", ENV_FOR(MPI), false, "OMPI_MCA_btl_tcp_port_min_v6",
        make_mpi_ports, NULL, "how many there are", "As OMPI_MCA_btl_tcp_port_min_v4.", OMPI_PORTS},
    {"PRTE_MCA_prte_if_include", ENV_FOR(MPI), false, "PRTE_MCA_prte_if_exclude", make_interface,
        hurts_interface, "the interface", "The same from Open MPI 5 on, whose launcher is PRRTE.",
        "PRRTE, parameter prte_if_include (prte_info --all)"},
    {"HYDRA_IFACE", ENV_FOR(MPI), false, NULL, make_interface, hurts_interface, "the interface",
        "The same for MPICH, whose launcher is Hydra.",
        "MPICH wiki, Using the Hydra Process Manager"},
    {"WEFT_NETWORK", ENV_FOR_ALL, false, NULL, make_network, NULL, "the network",
        "A checkpoint says of which job of which network it is, so that no other one takes it.",
        "examples/checkpoint.py"},
    {"WEFT_JOB", ENV_FOR_ALL, false, NULL, make_job, NULL, "the job (`--job`)", "As WEFT_NETWORK.",
        "examples/checkpoint.py"},
    {"WEFT_NODE", ENV_FOR_ALL, false, NULL, make_node, hurts_node, "this node's name",
        "A script finds itself in a plan by it.", "examples/train_hierarchical.py"},
    {"WEFT_PLAN", ENV_FOR_ALL, true, NULL, make_plan_file, NULL,
        "the file of `--plan`, or the one made for `--params`",
        "The job takes from it which nodes are an island, and how often islands exchange.",
        "docs/PLAN.md; examples/train_hierarchical.py"},
    {"WEFT_REPORT", ENV_FOR_ALL, true, NULL, make_report, NULL,
        "with a meeting at the hub, a socket for datagrams (`@NAME`: an abstract one)",
        "The script says there which step it has made, and how long it was in collectives.",
        "examples/weft.py"},
    {"WEFT_ISLAND_IFNAME", ENV_FOR_ALL, true, NULL, make_island_interface, NULL,
        "with `--island-lan` the interface of the island's private network",
        "A script makes a group inside the island with it, as GLOO_SOCKET_IFNAME of that moment.",
        "docs/ISLANDS.md; examples/train_hierarchical.py"},
    {"WEFT_ISLAND_LAN", ENV_FOR_ALL, true, NULL, make_island_lan, NULL,
        "with `--island-lan` a file of the nodes that it reaches: address and name on each line",
        "A group may leave the overlay only when each of its nodes reaches all others so.",
        "docs/ISLANDS.md; examples/train_hierarchical.py"},
};

_Static_assert(sizeof(env_rules) / sizeof(*env_rules) <= ENV_SIZE, "a plan holds them all");

static const size_t env_n_rules = sizeof(env_rules) / sizeof(*env_rules);

const char *const env_verdict_names[] = {
    [ENV_VERDICT_SET] = "set",
    [ENV_VERDICT_KEPT] = "kept",
    [ENV_VERDICT_HURTS] = "hurts",
    [ENV_VERDICT_UNNEEDED] = "unneeded",
};

static void assess(struct env_entry *entry, const struct env_rule *rule, const struct env_facts *f,
    env_lookup_fn lookup, void *ctx)
{
    const char *theirs = lookup(ctx, rule->name);

    *entry = (struct env_entry){.reason = rule->reason, .source = rule->source};
    (void)snprintf(entry->name, sizeof(entry->name), "%s", rule->name);
    /* A value that the person has set is never changed. */
    if (theirs) {
        (void)snprintf(entry->value, sizeof(entry->value), "%s", theirs);
        entry->verdict = rule->hurts && rule->hurts(f, theirs, entry->note) ? ENV_VERDICT_HURTS
                                                                            : ENV_VERDICT_KEPT;
        return;
    }
    entry->verdict = ENV_VERDICT_UNNEEDED;
    if (rule->otherwise && lookup(ctx, rule->otherwise))
        (void)snprintf(entry->note, sizeof(entry->note), "%s is set", rule->otherwise);
    else if (rule->make ? rule->make(f, entry->value, entry->note)
                        : profile_say(entry->value, "%s", rule->value))
        entry->verdict = ENV_VERDICT_SET;
}

void env_plan_make(
    struct env_plan *ret, const struct env_facts *facts, env_lookup_fn lookup, void *ctx)
{
    ret->n = 0;
    for (size_t i = 0; i < env_n_rules; i++) {
        bool is_of_fabric =
            env_fabric_applies(facts) && profile_find(profile_of(facts->fabric), env_rules[i].name);
        bool concerns = facts->command ? (env_rules[i].kinds & (1u << facts->command->kind)) != 0
                                       : !env_rules[i].needs_command;

        if (concerns && !is_of_fabric)
            assess(&ret->entries[ret->n++], &env_rules[i], facts, lookup, ctx);
    }
    env_fabric_add(ret, facts, lookup, ctx);
    env_fabric_assess(ret, facts);
}

struct env_entry *env_plan_find(const struct env_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->n; i++)
        if (strcmp(plan->entries[i].name, name) == 0)
            return (struct env_entry *)&plan->entries[i];
    return NULL;
}

size_t env_plan_count(const struct env_plan *plan, enum env_verdict verdict)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n; i++)
        n += plan->entries[i].verdict == verdict;
    return n;
}

static void add_kinds(struct str *out, unsigned kinds)
{
    const char *separator = "";

    if (kinds == ENV_FOR_ALL) {
        str_add(out, "all");
        return;
    }
    for (unsigned k = 0; k < COMMAND_KIND_N; k++)
        if (kinds & (1u << k)) {
            str_addf(out, "%s%s", separator, command_kind_names[k]);
            separator = ", ";
        }
}

void env_format_table(struct str *out)
{
    str_add(out, "| variable | for | value | why | source |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < env_n_rules; i++) {
        const struct env_rule *rule = &env_rules[i];

        str_addf(out, "| `%s` | ", rule->name);
        add_kinds(out, rule->kinds);
        str_addf(out, " | %s | %s | %s |\n", rule->value, rule->reason, rule->source);
    }
}
