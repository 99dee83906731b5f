/* service_process.c - see service_process.h. */
#include "measure/service_process.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "measure/dial.h"
#include "measure/table.h"
#include "mesh/object/fields.h"
#include "os/file.h"
#include "os/sandbox.h"

/* ---- what the agent says --------------------------------------------------------------------- */

static const char *const type_names[] = {"config", "list", "member", "look", "jobs"};

_Static_assert(sizeof(type_names) / sizeof(*type_names) == SERVICE_WIRE_N, "a name each");

#define BIT(type) (1u << SERVICE_WIRE_##type)

static const struct row wire_rows[] = {
    {ROW(TEXT, "interface", struct service_wire, interface), .kinds = BIT(CONFIG)},
    {ROW(TEXT, "socket", struct service_wire, socket_path), .kinds = BIT(CONFIG)},
    {ROW(U32, "port", struct service_wire, port), .min = 1, .max = UINT16_MAX,
        .kinds = BIT(CONFIG)},
    {ROW(ADDRESS, "own", struct service_wire, own), .kinds = BIT(LIST)},
    {ROW(U32, "members", struct service_wire, n), .max = SERVICE_WIRE_MEMBERS_MAX,
        .kinds = BIT(LIST)},
    {ROW(ADDRESS, "address", struct service_wire, member.address), .kinds = BIT(MEMBER)},
    {ROW(ADDRESS, "underlay", struct service_wire, member.underlay), .kinds = BIT(MEMBER)},
    {ROW(TEXT, "path", struct service_wire, member.path), .kinds = BIT(MEMBER)},
    {ROW(TEXT, "name", struct service_wire, member.name), .kinds = BIT(MEMBER)},
    {ROW(TEXT, "hostname", struct service_wire, member.hostname), .kinds = BIT(MEMBER)},
    {ROW(BOOL, "hub", struct service_wire, member.is_hub), .kinds = BIT(MEMBER)},
    {ROW(U32, "stunPort", struct service_wire, member.stun_port), .max = UINT16_MAX,
        .is_optional = true, .kinds = BIT(MEMBER)},
    {ROW(HEX, "key", struct service_wire, member.key), .is_optional = true,
        .has = offsetof(struct service_wire, member.has_key), .kinds = BIT(MEMBER)},
    {ROW(U32, "jobs", struct service_wire, n), .max = SERVICE_WIRE_JOBS_MAX, .kinds = BIT(JOBS)},
    {.type = ROW_END},
};

json_t *service_wire_encode(const struct service_wire *m)
{
    return table_encode(json_pack("{s:s}", "op", type_names[m->type]), wire_rows, 1u << m->type, m);
}

int service_wire_decode(struct service_wire *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the agent's message", e);
    struct service_wire m = {.type = SERVICE_WIRE_CONFIG};
    unsigned type = SERVICE_WIRE_CONFIG;

    fields_enum(&f, "op", FIELDS_REQUIRED, type_names, SERVICE_WIRE_N, &type);
    m.type = type;
    table_decode(&f, wire_rows, 1u << type, &m);
    /* The name of the interface becomes part of file names. */
    if (strchr(m.interface, '/') || m.interface[0] == '.')
        fields_fail(&f, "\"interface\" is \"%s\", which is no interface's name", m.interface);
    return fields_give(&f, ret, &m, sizeof(m));
}

/* ---- taking it in ---------------------------------------------------------------------------- */

/* What the agent has sent so far. */
struct agent_input {
    struct service *service;        /* owns; NULL until the configuration has come */
    struct service_wire config;     /* @service pins its texts */
    struct ip_addr own;             /* this node's address, from the list that is coming in */
    struct service_member *members; /* owns; room for @n_wanted */
    size_t n_wanted;                /* members in the list that is coming in; 0: there is none */
    size_t n;                       /* how many of these have arrived */
};

/* ---- the sandbox ---------------------------------------------------------------------------- */

/* Leaves accessible what facts.h and the resolver read, and the folder of the unix socket, where
 * the socket is made and removed. All other files become inaccessible. */
static int confine(const char *socket_path, struct err *e)
{
    char folder[SERVICE_WIRE_PATH_CAP];
    struct sandbox_path paths[] = {
        {"/usr", SANDBOX_READ},
        {"/bin", SANDBOX_READ},
        {"/lib", SANDBOX_READ},
        {"/lib32", SANDBOX_READ},
        {"/lib64", SANDBOX_READ},
        {"/opt", SANDBOX_READ},
        {"/etc", SANDBOX_READ},
        {"/run", SANDBOX_READ},
        {"/proc", SANDBOX_READ},
        {"/sys", SANDBOX_READ},
        {"/dev/null", SANDBOX_READ | SANDBOX_WRITE},
        {"/var/lib/sss", SANDBOX_READ},
        {folder, SANDBOX_READ | SANDBOX_WRITE},
    };
    struct sandbox sandbox = {.kind = SANDBOX_MEASURE,
        .uid = geteuid(),
        .gid = getegid(),
        .paths = paths,
        .n_paths = sizeof(paths) / sizeof(*paths)};

    memcpy(folder, socket_path, strlen(socket_path) + 1);
    paths[sandbox.n_paths - 1].path = dirname(folder);
    if (socket_path[0] == '\0')
        sandbox.n_paths--;
    return sandbox_enter(&sandbox, NULL, e);
}

/* ---- messages ------------------------------------------------------------------------------- */

static int begin_service(struct agent_input *t, const struct service_wire *m, struct err *e)
{
    struct service_wire *config = &t->config;
    int r;

    *config = *m;
    r = confine(m->socket_path, e);
    if (r < 0)
        return r;
    return service_new(&t->service, config->interface[0] != '\0' ? config->interface : NULL,
        config->socket_path[0] != '\0' ? config->socket_path : NULL, (uint16_t)config->port, e);
}

static void finish_list(struct agent_input *t)
{
    service_set_members(t->service, &t->own, t->members, t->n);
    free(t->members);
    t->members = NULL;
    t->n_wanted = t->n = 0;
}

static int take_message(struct agent_input *t, const struct service_wire *m, struct err *e)
{
    bool wants_config = !t->service;
    bool wants_member = t->n_wanted > 0;

    if ((m->type == SERVICE_WIRE_CONFIG) != wants_config ||
        (m->type == SERVICE_WIRE_MEMBER) != wants_member)
        return err_set(e, -EPROTO, "the agent says \"%s\" out of turn", type_names[m->type]);
    if (m->type == SERVICE_WIRE_CONFIG)
        return begin_service(t, m, e);
    if (m->type == SERVICE_WIRE_LIST) {
        t->members = calloc((size_t)m->n + 1, sizeof(*t->members));
        if (!t->members)
            return err_set(e, -ENOMEM, "no memory for %u members", (unsigned)m->n);
        t->own = m->own;
        t->n_wanted = m->n;
        if (m->n == 0)
            finish_list(t);
        return 0;
    }
    if (m->type == SERVICE_WIRE_LOOK) {
        service_recheck(t->service);
        return 0;
    }
    if (m->type == SERVICE_WIRE_JOBS) {
        service_set_jobs(t->service, m->n);
        return 0;
    }
    t->members[t->n++] = m->member;
    if (t->n == t->n_wanted)
        finish_list(t);
    return 0;
}

int service_process_run(int fd, struct err *e)
{
    _cleanup_(line_buffer_deinit) struct line_buffer lb = LINE_BUFFER_NULL;
    struct agent_input t = {.service = NULL};
    int r;

    do {
        struct service_wire m;
        json_t *json = NULL;

        r = line_read(&lb, fd, NSEC_NEVER, &json, e);
        if (r == -EPIPE)
            break;
        if (r == 0)
            r = service_wire_decode(&m, json, e);
        if (r == 0)
            r = take_message(&t, &m, e);
        json_decref(json);
    } while (r == 0);
    (void)service_free(t.service);
    free(t.members);
    return r == -EPIPE ? 0 : r;
}
