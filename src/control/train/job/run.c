/* run.c - see run.h. */
#include "train/job/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <net/if.h>
#include <netdb.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "fabric/fabric.h"
#include "mesh/names/hosts.h"
#include "net/address/sockaddr.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "os/file.h"
#include "os/clock.h"
#include "train/job/flight_watch.h"
#include "train/job/isolate.h"
#include "train/job/nccl_watch.h"
#include "train/job/rendezvous.h"

#define NODES_MAX 65536

/* How long the metadata service of a cloud may take, ms. */
#define METADATA_MS 1000

/* The first torch whose torchrun has --local-addr, as major * 100 + minor. */
#define TORCH_WITH_LOCAL_ADDR 200

/* ==== the island's private network =========================================================== */

#define ASK_TIMEOUT_MS 5000

#define HOSTS          "/etc/hosts"
#define HOSTS_MAX      (16 << 20) /* bytes; larger is no hosts file */
#define NODES_FILE     "island-nodes"
#define JOB_HOSTS_FILE "hosts"

/* ---- who is reached, and by which interface ------------------------------------------------- */

/* Keeps the nodes that are reached by the interface of the first one; @ret: its name. */
static void keep_reached(struct island_lan *l, char ret[static IF_NAMESIZE])
{
    struct netlink nl = NETLINK_NULL;
    char interface[IF_NAMESIZE];
    size_t n = 0;

    ret[0] = '\0';
    if (netlink_open(&nl, NETLINK_ROUTE) == 0)
        for (size_t i = 0; i < l->n; i++) {
            const struct rtnl_flow flow = {.to = {.addr = l->mates[i].lan}};
            unsigned number;

            if (rtnl_way_out(&nl, &flow, &number) != 0 || !if_indextoname(number, interface) ||
                (n > 0 && strcmp(interface, ret) != 0))
                continue;
            memcpy(ret, interface, IF_NAMESIZE);
            l->mates[n++] = l->mates[i];
        }
    l->n = n;
    netlink_close(&nl);
}

/* Asks the agent. False: it does not answer. */
static bool find_nodes(
    const char *socket_path, struct island_lan *ret, char ret_interface[static IF_NAMESIZE])
{
    json_auto_t *status = NULL;
    bool found = agent_ask(socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) == 0 &&
                 island_lan_of_status(ret, status) == 0;

    if (found)
        keep_reached(ret, ret_interface);
    return found;
}

/* ---- the files ------------------------------------------------------------------------------ */

/* Makes @path hold @text. */
static int write_text(const char *path, const struct str *text, struct err *e)
{
    if (text->failed)
        return err_set(e, -ENOMEM, "no memory for %.200s", path);
    return statefile_replace(path, str_text(text), text->len, 0644, e);
}

static void name_file(const struct run *run, const char *name, char ret[static PATH_MAX])
{
    (void)snprintf(ret, PATH_MAX, "%s/%s", run->dir, name);
}

static int write_nodes(struct run *run, const struct island_lan *l, struct err *e)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;
    char path[PATH_MAX];
    int r = run_make_dir(run, e);

    if (r < 0)
        return r;
    island_lan_format(l, &text);
    name_file(run, NODES_FILE, path);
    r = write_text(path, &text, e);
    if (r == 0)
        run_give(run, "WEFT_ISLAND_LAN", path);
    return r;
}

static bool run_island_is_ours(const char *hosts)
{
    return strncmp(hosts, ISLAND_LAN_MARK, strlen(ISLAND_LAN_MARK)) == 0;
}

/* Reads the machine's own file. One that lies over it is taken away before. */
static int read_hosts(char **ret, size_t *ret_len, struct err *e)
{
    char *text = NULL;
    int r = statefile_read(HOSTS, HOSTS_MAX, &text, ret_len, e);

    if (r == 0 && run_island_is_ours(text)) {
        free(text);
        text = NULL;
        if (umount2(HOSTS, MNT_DETACH) < 0)
            return err_set(e, -errno, "%s: %s", HOSTS, strerror(errno));
        r = statefile_read(HOSTS, HOSTS_MAX, &text, ret_len, e);
    }
    if (r == 0)
        *ret = text;
    return r;
}

static int lay_hosts(const struct run *run, const struct island_lan *l, struct err *e)
{
    _cleanup_(str_deinit) struct str text = STR_NULL;
    char path[PATH_MAX];
    _cleanup_(freep) char *old = NULL;
    size_t len;
    int r = read_hosts(&old, &len, e);

    if (r != 0)
        return r;
    island_lan_hosts(l, &text, old, len);
    name_file(run, JOB_HOSTS_FILE, path);
    r = write_text(path, &text, e);
    if (r == 0 && mount(path, HOSTS, NULL, MS_BIND, NULL) < 0)
        r = err_set(e, -errno, "%s: %s", HOSTS, strerror(errno));
    return r;
}

/* A mount namespace of this process's own: what is mounted in it is seen by the command alone. */
static int take_namespace(struct err *e)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return err_set(e, -errno, "%s", strerror(errno));
    return 0;
}

void run_take_island(struct run *run, struct str *notes)
{
    _cleanup_(island_lan_deinit) struct island_lan l = ISLAND_LAN_NULL;
    char interface[IF_NAMESIZE];
    struct err e = ERR_NULL;

    if (run->island_interface[0] == '\0')
        return;
    if (!find_nodes(run->socket_path, &l, interface))
        (void)err_set(&e, -ENOTCONN, "the agent does not answer");
    if (e.code != 0 || write_nodes(run, &l, &e) < 0) {
        str_addf(notes, "--island-lan: the job is not told the island's nodes: %s\n", err_text(&e));
        run_give(run, "WEFT_ISLAND_LAN", "");
        run_leave_island();
        return;
    }
    if (take_namespace(&e) < 0 || lay_hosts(run, &l, &e) != 0)
        str_addf(notes,
            "--island-lan: names of the island's nodes lead onto the overlay, as it takes root to "
            "lay a hosts file of the job's own: %s\n",
            err_text(&e));
    else
        run->has_island_hosts = true;
}

void run_leave_island(void)
{
    _cleanup_(freep) char *text = NULL;
    size_t len;

    if (statefile_read(HOSTS, HOSTS_MAX, &text, &len, NULL) != 0)
        return;
    /* In one more namespace: who started this process may see the same file, and keeps it. */
    if (run_island_is_ours(text) && take_namespace(NULL) == 0)
        (void)umount2(HOSTS, MNT_DETACH);
}

void run_keep_island(const struct run *run)
{
    _cleanup_(island_lan_deinit) struct island_lan l = ISLAND_LAN_NULL;
    char interface[IF_NAMESIZE];
    _cleanup_(freep) char *text = NULL;
    size_t len;

    if (statefile_read(HOSTS, HOSTS_MAX, &text, &len, NULL) != 0)
        return;
    if (!run_island_is_ours(text) && find_nodes(run->socket_path, &l, interface))
        (void)lay_hosts(run, &l, NULL);
}

/* ==== the preparations ======================================================================= */

/* ---- how many nodes ------------------------------------------------------------------------- */

/* Reads "4" or a range "2:4". @ret_max: set to the second number, or to the only one. 0, or -EINVAL
 * with words. */
static int read_nnodes(const char *text, uint64_t *ret_min, uint64_t *ret_max, struct err *e)
{
    char first[24] = "";
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);

    if (len < sizeof(first))
        memcpy(first, text, len);
    if (parse_u64(ret_min, first, 1, NODES_MAX, "nnodes", NULL) != 0 ||
        parse_u64(ret_max, colon ? colon + 1 : first, 1, NODES_MAX, "nnodes", NULL) != 0)
        return err_set(e, -EINVAL,
            "--nnodes \"%.40s\" is neither a number of nodes nor MIN:MAX, from 1 to %d", text,
            NODES_MAX);
    if (*ret_min > *ret_max)
        return err_set(e, -EINVAL, "--nnodes \"%.40s\": MIN, %llu, is more than MAX, %llu", text,
            (unsigned long long)*ret_min, (unsigned long long)*ret_max);
    return 0;
}

int run_check(const struct run_options *opt, struct err *e)
{
    const char *backend = opt->rendezvous;
    uint64_t min;
    uint64_t max;

    if (backend && strcmp(backend, "c10d") != 0 && strcmp(backend, "etcd-v2") != 0 &&
        strcmp(backend, "none") != 0)
        return err_set(
            e, -EINVAL, "--rendezvous \"%.40s\" is none of c10d, etcd-v2, none", backend);
    return opt->nnodes ? read_nnodes(opt->nnodes, &min, &max, e) : 0;
}

/* Is it torchrun, or something that may start it? */
static bool may_be_torchrun(const struct command *c)
{
    return c->kind == COMMAND_KIND_TORCHRUN || c->kind == COMMAND_KIND_PLAIN;
}

/* Gives the number of nodes: from the command's own option, else the environment, else @wanted. */
static const char *decide_nnodes(const struct command *c, const char *wanted)
{
    const char *set = may_be_torchrun(c) ? getenv("PET_NNODES") : NULL;

    if (c->nnodes)
        return c->nnodes;
    return set && set[0] != '\0' ? set : wanted;
}

/* ---- where to meet -------------------------------------------------------------------------- */

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] != '\0';
}

/*
 * Does the command meet without the hub? It does where its options or the environment say where to
 * meet. mpirun always does, because it connects its processes itself.
 */
static bool meets_by_itself(const struct command *c)
{
    switch (c->kind) {
    case COMMAND_KIND_TORCHRUN:
        return c->says_rendezvous || is_set("PET_RDZV_ENDPOINT") || is_set("PET_STANDALONE") ||
               is_set("PET_MASTER_ADDR");
    case COMMAND_KIND_PLAIN:
        return is_set("MASTER_ADDR") || is_set("PET_RDZV_ENDPOINT") || is_set("PET_STANDALONE") ||
               is_set("PET_MASTER_ADDR");
    case COMMAND_KIND_ACCELERATE:
        return c->says_rendezvous;
    case COMMAND_KIND_DEEPSPEED:
        return false;
    case COMMAND_KIND_MPI:
    case COMMAND_KIND_N:
        break;
    }
    return true;
}

/* Gives the backend: from the command's own option, else the environment, else @wanted, or c10d. */
static const char *decide_backend(const struct command *c, const char *wanted)
{
    const char *set = getenv("PET_RDZV_BACKEND");

    if (c->backend)
        return c->backend;
    if (may_be_torchrun(c) && set && set[0] != '\0')
        return set;
    return wanted ? wanted : "c10d";
}

/*
 * Writes the endpoint with the name of whichever hub serves the rendezvous, if that leads to
 * @endpoint on this machine. False: it does not, or there is no such name.
 */
static bool name_endpoint(const char *endpoint, const char *network, char *ret, size_t cap)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const char *port = strrchr(endpoint, ':');
    struct addrinfo *found = NULL;
    char name[NAME_MAX_LEN + sizeof(HOSTS_RENDEZVOUS ".." HOSTS_DOMAIN)];
    struct endpoint wanted;
    bool leads_there = false;

    (void)snprintf(
        name, sizeof(name), HOSTS_RENDEZVOUS ".%.*s." HOSTS_DOMAIN, NAME_MAX_LEN, network);
    if (!port || endpoint_parse(&wanted, endpoint, NULL) != 0 ||
        getaddrinfo(name, port + 1, &hints, &found) != 0)
        return false;
    for (const struct addrinfo *a = found; a && !leads_there; a = a->ai_next) {
        struct endpoint at;

        leads_there = sockaddr_to_endpoint((const union sockaddr_inet *)a->ai_addr, &at) &&
                      endpoint_equal(&at, &wanted);
    }
    freeaddrinfo(found);
    return leads_there && snprintf(ret, cap, "%s%s", name, port) < (int)cap;
}

static int choose_endpoint(struct run *run, const char *backend, struct err *e)
{
    struct env_rendezvous *m = &run->rendezvous;
    bool etcd = strcmp(backend, "etcd-v2") == 0 || strcmp(backend, "etcd") == 0;
    const char *endpoint = etcd ? m->etcd : m->c10d;

    if (endpoint[0] == '\0')
        return err_set(e, -ENOTSUP, "the hub serves no %s rendezvous", backend);
    (void)snprintf(m->backend, sizeof(m->backend), "%s", backend);
    /* etcd's client connects again by itself, and asks for the address each time. */
    run->follows_hub = etcd && run->node.has_hubs &&
                       name_endpoint(endpoint, run->node.network, m->endpoint, sizeof(m->endpoint));
    if (!run->follows_hub)
        (void)snprintf(m->endpoint, sizeof(m->endpoint), "%s", endpoint);
    return 0;
}

const char *run_broken(const struct run *run)
{
    /* The nodes of an elastic job that follow the hub may still be at work in this run. */
    return run->is_elastic && run->follows_hub ? NULL : run->rendezvous.id;
}

/* Is the command only explained? Then the job stays as it is, and this node does not come to it. */
static bool is_dry_run(const struct run_options *opt)
{
    return opt->words && !opt->starts;
}

static int find_rendezvous(
    struct run *run, const struct run_options *opt, const char *nnodes, struct err *e)
{
    const char *backend = decide_backend(&run->command, opt->rendezvous);
    const struct rendezvous_arrival arrival = {.broken = opt->broken_run,
        .nnodes = nnodes,
        .is_dry_run = is_dry_run(opt),
        .is_isolated = opt->is_isolated};
    uint64_t min = 0;
    uint64_t max = 0;
    int r;

    if (!nnodes || meets_by_itself(&run->command) || strcmp(backend, "none") == 0 ||
        strcmp(backend, "static") == 0)
        return 0;
    r = read_nnodes(nnodes, &min, &max, e);
    if (r != 0 || max == 1)
        return r;
    run->min_nodes = (unsigned)min;
    r = parse_name(run->job, "job", e);
    if (r == 0 && run->node.hub.port == 0)
        r = err_set(e, -ENOTCONN, "the network %s has no hub to meet at", run->node.network);
    if (r == 0)
        r = rendezvous_ask(run->socket_path, run->job, &arrival, &run->rendezvous, e);
    if (r == 0)
        r = choose_endpoint(run, backend, e);
    /* torchrun starts workers again by itself, so its scripts begin at a checkpoint. */
    run->can_begin_again =
        r == 0 && !opt->once && (run->is_elastic || run->command.kind == COMMAND_KIND_TORCHRUN);
    run->wait_lost = opt->wait_lost;
    if (opt->command_id)
        (void)snprintf(run->command_id, sizeof(run->command_id), "%s", opt->command_id);
    return r;
}

/* ---- what rank 0 announces ----------------------------------------------------------------- */

/*
 * Sets run->host_name for a torchrun before torch 2.0, whose rank 0 announces the machine's host
 * name. Leaves it empty for any other command, without root, or when the name would be too long.
 */
static void choose_host_name(struct run *run)
{
    char name[2 * NAME_MAX_LEN + sizeof("..weft")];

    if (!may_be_torchrun(&run->command) || run->torch.torch == 0 ||
        run->torch.torch >= TORCH_WITH_LOCAL_ADDR || run->rendezvous.id[0] == '\0' ||
        geteuid() != 0)
        return;
    if (snprintf(name, sizeof(name), "%s.%s." HOSTS_DOMAIN, run->node.name, run->node.network) <=
        HOST_NAME_MAX)
        memcpy(run->host_name, name, strlen(name) + 1);
}

bool run_take_host_name(struct run *run)
{
    size_t len = strlen(run->host_name);

    if (len == 0)
        return true;
    if (unshare(CLONE_NEWUTS) == 0 && sethostname(run->host_name, len) == 0)
        return true;
    run->host_name[0] = '\0';
    return false;
}

/* ---- all of it ------------------------------------------------------------------------------ */

static const char *look_up(void *ctx, const char *name)
{
    return getenv(name);
}

/*
 * May NCCL's log be read? Not where other machines get the variables, which lack the directory, and
 * not where the command takes the place of this process. Return: NULL, or why not.
 */
static const char *why_not_nccl_log(const struct run *run)
{
    switch (run->command.kind) {
    case COMMAND_KIND_TORCHRUN:
    case COMMAND_KIND_ACCELERATE:
        return NULL;
    case COMMAND_KIND_PLAIN:
        return run->rendezvous.id[0] != '\0'
                   ? NULL
                   : "the command does not meet at the hub, so it takes the place of weft run";
    case COMMAND_KIND_DEEPSPEED:
    case COMMAND_KIND_MPI:
    case COMMAND_KIND_N:
        break;
    }
    return "its processes are started on other machines, too";
}

/* The same of what PyTorch's flight recorder writes. */
static const char *why_not_flight(const struct run *run)
{
    const char *why = why_not_nccl_log(run);

    return why ? why : run->rendezvous.id[0] != '\0' ? NULL : "the job does not meet at the hub";
}

static void make_plan(struct run *run, const struct run_options *opt, const char *nnodes)
{
    char nccl_log[ENV_VALUE_MAX] = "a file of its own";
    char flight[ENV_VALUE_MAX] = "files of its own";
    const char *why = why_not_nccl_log(run);
    const char *flight_why = why_not_flight(run);
    /* The person's own environment may say what becomes of NCCL's log. */
    bool has_log = !why && !getenv("NCCL_DEBUG") && !getenv("NCCL_DEBUG_FILE");
    struct err e = ERR_NULL;

    if (opt->starts && (has_log || !flight_why)) {
        if (run_dir_name(run->dir, &e) < 0) {
            why = why ? why : err_text(&e);
            flight_why = flight_why ? flight_why : err_text(&e);
        }
        (void)snprintf(nccl_log, sizeof(nccl_log), "%s/%s", run->dir, NCCL_WATCH_FILE);
        (void)snprintf(flight, sizeof(flight), "%s/%s", run->dir, FLIGHT_WATCH_FILE);
    }
    const struct env_facts facts = {
        .command = opt->words ? &run->command : NULL,
        .interface = run->node.interface,
        .address4 = run->node.address4,
        .network = run->node.network,
        .node = run->node.name,
        .job = run->job,
        .nnodes = nnodes,
        .rendezvous = run->rendezvous.id[0] != '\0' ? &run->rendezvous : NULL,
        .ranks = &run->ranks,
        .is_one_island = opt->inside_islands || run->node.is_one_island,
        .island_interface = run->island_interface,
        .has_infiniband = run->node.has_infiniband,
        .fabric = &run->fabric,
        .nccl = run->torch.nccl,
        .nccl_log = why ? NULL : nccl_log,
        .nccl_why = why,
        .flight = flight_why ? NULL : flight,
        .flight_why = flight_why,
        .plan = opt->plan     ? opt->plan
                : opt->params ? "a file that is made before the start"
                              : NULL,
        .theirs = environ,
        .first_port = run->node.ports.first,
        .last_port = run->node.ports.last,
        .torch = run->torch.torch,
        .python = run->torch.python_version,
    };

    run->uses_fabric = facts.is_one_island;
    env_plan_make(&run->plan, &facts, look_up, NULL);
}

/* A plain command is told its rank, and where rank 0 is. */
static int find_ranks(struct run *run, const struct run_options *opt, struct err *e)
{
    struct ranks_options ranks = {.rendezvous = &run->rendezvous,
        .node = run->node.name,
        .address4 = run->node.address4,
        .first_port = run->node.ports.first,
        .starts = opt->starts};
    int r;

    if (!opt->words || run->command.kind != COMMAND_KIND_PLAIN || run->is_elastic ||
        run->rendezvous.id[0] == '\0' || run->rendezvous.etcd[0] == '\0')
        return 0;
    if (run->rendezvous.begins) {
        run->ranks = (struct ranks){.is_known = true};
        (void)snprintf(run->ranks.address, sizeof(run->ranks.address), "%s", ranks.address4);
        return 0;
    }
    r = ranks_find(&ranks, &run->ranks, e);
    if (r != 0)
        return err_prefix(e, "this node's rank is not known");
    /* No process group has room for it. */
    if (opt->starts && run->ranks.rank >= run->min_nodes)
        return err_set(e, -EBUSY,
            "the job \"%s\" has its %u nodes, and this would be one more: wait until it is over, "
            "or "
            "give this one another name with --job",
            run->job, run->min_nodes);
    return 0;
}

int run_prepare(struct run *ret, const struct run_options *opt, struct err *e)
{
    /*
     * Without a command (`weft env`) it is not known what will run. The job is treated as one of
     * torchrun, so that the hub is asked where it meets.
     */
    struct run run = {.socket_path = opt->socket_path, .command = {.kind = COMMAND_KIND_TORCHRUN}};
    _cleanup_(island_lan_deinit) struct island_lan island = ISLAND_LAN_NULL;
    const char *nnodes;
    int r = 0;

    if (opt->words) {
        command_read(&run.command, opt->words);
        torch_find(&run.torch, run.command.program);
        /* A wrapper, such as a shell, is not Python: the torchrun that it would find is looked at.
         */
        if (run.command.kind == COMMAND_KIND_PLAIN && run.torch.torch == 0)
            torch_find(&run.torch, "torchrun");
    }
    if (opt->starts)
        r = script_check(&run.command, &run.torch, e);
    if (r == 0)
        r = train_node_read(&run.node, opt->socket_path, e);
    if (r != 0)
        return r;
    nnodes = decide_nnodes(&run.command, opt->nnodes);
    if (opt->job)
        (void)snprintf(run.job, sizeof(run.job), "%s", opt->job);
    else
        (void)command_job_name(&run.command, run.job);
    run.is_elastic = nnodes && strchr(nnodes, ':');
    r = find_rendezvous(&run, opt, nnodes, e);
    if (r == 0 && opt->is_isolated && run.rendezvous.id[0] == '\0')
        r = err_set(e, -EINVAL,
            "--isolate: the job does not meet at the hub, which knows only of jobs that do who is "
            "in them");
    if (r != 0)
        return r;
    run.is_isolated = opt->is_isolated && !is_dry_run(opt);
    /* Where all else is refused, it is the job's rule that lets this node reach the job's store. */
    if (run.is_isolated)
        r = isolate_await(&run, e);
    if (r != 0)
        return r;
    r = find_ranks(&run, opt, e);
    if (r != 0)
        return r;
    choose_host_name(&run);
    /* "" when no node is reached over such a network. */
    if (opt->island_lan && !find_nodes(run.socket_path, &island, run.island_interface))
        run.island_interface[0] = '\0';
    run.is_quiet = opt->is_quiet;
    fabric_read_here(&run.fabric, FABRIC_VIEW_JOB, METADATA_MS);
    make_plan(&run, opt, nnodes);
    *ret = run;
    return 0;
}

void run_summary(const struct run *run, struct str *out)
{
    size_t n = env_plan_count(&run->plan, ENV_VERDICT_SET);

    str_addf(out, "%s", command_kind_names[run->command.kind]);
    if (run->torch.torch != 0)
        str_addf(out, " with torch %s of %s", run->torch.version, run->torch.python);
    str_addf(out, " on %s (%s, %s), %zu variable%s set", run->node.name, run->node.interface,
        run->node.address4, n, n == 1 ? "" : "s");
    if (run->rendezvous.id[0] != '\0')
        str_addf(out, "; job %s meets at %s by %s", run->rendezvous.id, run->rendezvous.endpoint,
            run->rendezvous.backend);
    if (run->host_name[0] != '\0')
        str_addf(out, "; the host's name is %s in it", run->host_name);
    str_add(out, "\n");
}

/*
 * Warns when rank 0 would announce a host name that is not the node's name. Other nodes have the
 * node's name in their hosts files. They have its machine's host name only where nothing else has
 * that name.
 */
static void advise_host_name(const struct run *run, struct str *out)
{
    char host[NAME_MAX_LEN + 2] = "";

    if (run->command.kind != COMMAND_KIND_TORCHRUN || run->torch.torch == 0 ||
        run->torch.torch >= TORCH_WITH_LOCAL_ADDR || run->rendezvous.id[0] == '\0' ||
        run->host_name[0] != '\0' || gethostname(host, sizeof(host) - 1) < 0 ||
        strcmp(host, run->node.name) == 0)
        return;
    str_addf(out,
        "torch %s has rank 0 announce its host name, and this machine's, \"%s\", is not the "
        "node's, %s: other nodes find it only if that leads to %s there, as weft preflight "
        "checks; run as root, weft run has it announce %s.%s." HOSTS_DOMAIN "\n",
        run->torch.version, host, run->node.name, run->node.address4, run->node.name,
        run->node.network);
}

static void advise_launcher(const struct run *run, struct str *out)
{
    const char *endpoint = run->rendezvous.endpoint;
    const char *colon = strrchr(endpoint, ':');

    switch (run->command.kind) {
    case COMMAND_KIND_ACCELERATE:
        if (run->rendezvous.id[0] != '\0' &&
            (run->is_elastic || command_says(&run->command, "same_network")))
            str_addf(out,
                "accelerate meets at the hub with a fixed number of nodes and without "
                "--same_network only: --rdzv_backend %s --main_process_ip %.*s "
                "--main_process_port %s\n",
                run->rendezvous.backend, colon ? (int)(colon - endpoint) : 0, endpoint,
                colon ? colon + 1 : "");
        break;
    case COMMAND_KIND_DEEPSPEED:
        if (!run->command.hostfile)
            str_add(out,
                "deepspeed finds its nodes by --hostfile only: weft env --hostfile prints one with "
                "the overlay's addresses\n");
        else if (!command_says(&run->command, "no_ssh"))
            str_add(out,
                "deepspeed hands other machines the variables that begin with NCCL, UCX or PYTHON "
                "only: put others, such as GLOO_SOCKET_IFNAME, into .deepspeed_env\n");
        break;
    case COMMAND_KIND_MPI:
        str_add(out,
            "mpirun hands ranks on other machines only its own variables: name the others with "
            "-x (Open MPI) or -genvlist (MPICH), such as -x NCCL_SOCKET_IFNAME\n");
        break;
    case COMMAND_KIND_PLAIN:
    case COMMAND_KIND_TORCHRUN:
    case COMMAND_KIND_N:
        break;
    }
}

void run_advise(const struct run *run, struct str *out)
{
    struct libfabric l;

    for (size_t i = 0; i < run->plan.n; i++) {
        const struct env_entry *entry = &run->plan.entries[i];

        if (entry->verdict == ENV_VERDICT_HURTS)
            str_addf(
                out, "%s=%s is yours and stays, but %s\n", entry->name, entry->value, entry->note);
    }
    script_advise(&run->command, &run->torch, out);
    /* What libfabric says of EFA, for a job that is to use it. */
    if (run->uses_fabric && run->fabric.kind == FABRIC_EFA && libfabric_ask(&l))
        libfabric_assess(&l, &run->fabric, out);
    /* NCCL plans with the speed that the kernel says. */
    if (run->node.speed_mbit >= 0 && run->node.speed_mbit < 1000)
        str_addf(out,
            "the kernel says that %s has %ld Mbit/s, and NCCL will plan with that: "
            "ethtool -s %s speed 10000 duplex full\n",
            run->node.interface, run->node.speed_mbit, run->node.interface);
    advise_host_name(run, out);
    advise_launcher(run, out);
}

/* ==== the directory of a run ================================================================= */

/* Bytes of a name that nobody guesses. */
#define UNIQUE_LEN 16

int run_dir_name(char ret[static RUN_DIR_MAX], struct err *e)
{
    const char *base = getenv("TMPDIR");
    struct rng rng = rng_kernel();
    uint8_t unique[UNIQUE_LEN];
    char hex[2 * UNIQUE_LEN + 1];
    char path[RUN_DIR_MAX];

    if (!base || base[0] != '/')
        base = "/tmp";
    rng_fill(&rng, unique, sizeof(unique));
    hex_encode(unique, sizeof(unique), hex);
    if (snprintf(path, sizeof(path), "%s/weft-run-%s", base, hex) >= (int)sizeof(path))
        return err_set(e, -ENAMETOOLONG, "TMPDIR \"%.40s...\" is too long", base);
    if (faccessat(AT_FDCWD, base, W_OK | X_OK, AT_EACCESS) < 0)
        return err_set(e, -errno, "no directory can be made in %.200s: %s", base, strerror(errno));
    memcpy(ret, path, sizeof(path));
    return 0;
}

void run_dir_remove(const char *dir)
{
    _cleanup_(closep) int fd =
        dir[0] != '\0' ? open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    struct stat st;
    /* Is it one that run_make_dir() has made, and not a folder that somebody has put in its place?
     * The folder above may have handed the set-group-ID bit on to it. */
    bool is_ours = fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
                   (st.st_mode & (07777 & ~S_ISGID)) == 0700;
    DIR *d = is_ours ? fdopendir(fd) : NULL;

    if (!d)
        return;
    fd = -1; /* closedir() closes it. */
    for (struct dirent *entry = readdir(d); entry; entry = readdir(d))
        (void)unlinkat(dirfd(d), entry->d_name, 0);
    (void)closedir(d);
    (void)rmdir(dir);
}

void run_give(struct run *run, const char *name, const char *value)
{
    struct env_entry *entry = env_plan_find(&run->plan, name);

    if (entry && entry->verdict != ENV_VERDICT_KEPT) {
        entry->verdict = ENV_VERDICT_SET;
        (void)snprintf(entry->value, sizeof(entry->value), "%s", value);
    }
}

int run_make_dir(struct run *run, struct err *e)
{
    int r = run->dir[0] != '\0' ? 0 : run_dir_name(run->dir, e);

    if (r == 0 && !run->has_dir && mkdir(run->dir, 0700) < 0)
        r = err_set(e, -errno, "%.200s cannot be made: %s", run->dir, strerror(errno));
    run->has_dir |= r == 0;
    return r;
}
