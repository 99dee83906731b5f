/* service_process.c - see service_process.h. */
#include "measure/service_process.h"

#include <errno.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/text.h"
#include "os/sandbox.h"

#define IN_CAP (64u << 10)

/* What the agent has sent so far. */
struct agent_input {
    int fd;                         /* borrowed */
    struct service *service;        /* owns; NULL until the configuration has come */
    struct service_wire config;     /* @service pins its texts */
    struct ip_addr own;             /* this node's address, from the list that is coming in */
    struct service_member *members; /* owns; room for @n_wanted */
    size_t n_wanted;                /* members in the list that is coming in; 0: there is none */
    size_t n;                       /* how many of these have arrived */
    size_t len;                     /* bytes used in @in */
    uint8_t in[IN_CAP];
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
    struct service_config config = {.port = m->port};
    int r;

    t->config = *m;
    if (m->interface[0] != '\0')
        config.interface = t->config.interface;
    if (m->socket_path[0] != '\0')
        config.socket_path = t->config.socket_path;
    r = confine(m->socket_path, e);
    return r < 0 ? r : service_new(&t->service, &config, e);
}

static void finish_list(struct agent_input *t)
{
    service_set_members(t->service, &t->own, t->members, t->n);
    free(t->members);
    t->members = NULL;
    t->n_wanted = t->n = 0;
}

static int begin_list(struct agent_input *t, const struct service_wire *m, struct err *e)
{
    t->members = calloc((size_t)m->n + 1, sizeof(*t->members));
    if (!t->members)
        return err_set(e, -ENOMEM, "no memory for %u members", (unsigned)m->n);
    t->own = m->own;
    t->n_wanted = m->n;
    if (m->n == 0)
        finish_list(t);
    return 0;
}

static int take_message(struct agent_input *t, const struct service_wire *m, struct err *e)
{
    bool wants_config = !t->service;
    bool wants_member = t->n_wanted > 0;

    if ((m->type == SERVICE_WIRE_CONFIG) != wants_config ||
        (m->type == SERVICE_WIRE_MEMBER) != wants_member)
        return err_set(e, -EPROTO, "the agent says %u out of turn", (unsigned)m->type);
    if (m->type == SERVICE_WIRE_CONFIG)
        return begin_service(t, m, e);
    if (m->type == SERVICE_WIRE_LIST)
        return begin_list(t, m, e);
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

/* Carries out all messages that have arrived completely. */
static int take_messages(struct agent_input *t, struct err *e)
{
    size_t off = 0;
    int r = 0;

    while (r == 0) {
        struct service_wire m;
        size_t used = 0;

        r = service_wire_decode(&m, t->in + off, t->len - off, &used);
        if (r == SERVICE_WIRE_E_SHORT)
            break;
        r = r != 0 ? err_set(e, -EPROTO, "the agent says what is no message")
                   : take_message(t, &m, e);
        off += used;
    }
    memmove(t->in, t->in + off, t->len - off);
    t->len -= off;
    return r < 0 ? r : 0;
}

int service_process_run(int fd, struct err *e)
{
    struct agent_input *t = calloc(1, sizeof(*t));
    ssize_t n = 1;
    int r = 0;

    if (!t)
        return err_set(e, -ENOMEM, "no memory for the measuring service");
    t->fd = fd;
    while (r == 0 && n != 0) {
        n = recv(t->fd, t->in + t->len, IN_CAP - t->len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        t->len += (size_t)n;
        r = take_messages(t, e);
    }
    (void)service_free(t->service);
    free(t->members);
    free(t);
    return r;
}

/* ---- the wire -------------------------------------------------------------------------------- */

enum wire_form {
    WIRE_BYTES,
    WIRE_NUMBER, /* little-endian, of two or four bytes */
    WIRE_FLAG,   /* a byte, 0 or 1 */
    WIRE_TEXT,   /* a length of one byte, and the bytes */
};

/* A field of a message, in the order in which they are sent. */
struct wire_field {
    enum service_wire_type of;
    enum wire_form form;
    size_t offset; /* in struct service_wire */
    size_t size;
    size_t has; /* offset of the flag without which it is not there; 0: it always is */
};

#define FIELD(of_, form_, member_)                                                                 \
    .of = SERVICE_WIRE_##of_, .form = WIRE_##form_,                                                \
    .offset = offsetof(struct service_wire, member_),                                              \
    .size = sizeof(((struct service_wire *)0)->member_)

static const struct wire_field wire_fields[] = {
    {FIELD(CONFIG, TEXT, interface)},
    {FIELD(CONFIG, TEXT, socket_path)},
    {FIELD(CONFIG, NUMBER, port)},
    {FIELD(LIST, BYTES, own)},
    {FIELD(LIST, NUMBER, n)},
    {FIELD(MEMBER, BYTES, member.address)},
    {FIELD(MEMBER, BYTES, member.underlay)},
    {FIELD(MEMBER, TEXT, member.path)},
    {FIELD(MEMBER, TEXT, member.name)},
    {FIELD(MEMBER, TEXT, member.hostname)},
    {FIELD(MEMBER, FLAG, member.is_hub)},
    {FIELD(MEMBER, FLAG, member.has_key)},
    {FIELD(JOBS, NUMBER, n)},
    {FIELD(MEMBER, BYTES, member.key), .has = offsetof(struct service_wire, member.has_key)},
};

#define N_FIELDS (sizeof(wire_fields) / sizeof(*wire_fields))

static bool is_there(const struct wire_field *field, const struct service_wire *m)
{
    return field->of == m->type &&
           (field->has == 0 || *((const bool *)(const void *)m + field->has));
}

static void add_number(struct str *out, uint32_t v, size_t size)
{
    struct le32 wire = le32_make(v);

    str_add_bytes(out, (const char *)wire.b, size);
}

static void encode_field(struct str *out, const struct wire_field *field, const char *member)
{
    switch (field->form) {
    case WIRE_BYTES:
        str_add_bytes(out, member, field->size);
        break;
    case WIRE_NUMBER:
        add_number(out,
            field->size == sizeof(uint16_t) ? *(const uint16_t *)(const void *)member
                                            : *(const uint32_t *)(const void *)member,
            field->size);
        break;
    case WIRE_FLAG:
        add_number(out, *(const bool *)member, 1);
        break;
    case WIRE_TEXT:
        /* No text is longer than 255 bytes, which is the most that its length can express. */
        add_number(out, (uint32_t)strlen(member), 1);
        str_add(out, member);
        break;
    }
}

void service_wire_encode(struct str *out, const struct service_wire *m)
{
    size_t start = out->len;
    struct le32 len;

    add_number(out, 0, SERVICE_WIRE_HEAD);
    add_number(out, m->type, 1);
    for (size_t i = 0; i < N_FIELDS; i++)
        if (is_there(&wire_fields[i], m))
            encode_field(out, &wire_fields[i], (const char *)m + wire_fields[i].offset);
    if (out->failed)
        return;
    len = le32_make((uint32_t)(out->len - start - SERVICE_WIRE_HEAD));
    memcpy(out->text + start, len.b, sizeof(len.b));
}

static uint32_t read_number(struct reader *r, size_t size)
{
    struct le32 v = {{0}};

    reader_copy(r, &v, size);
    return le32_get(v);
}

static void decode_field(struct reader *r, const struct wire_field *field, char *member)
{
    uint32_t v;

    switch (field->form) {
    case WIRE_BYTES:
        reader_copy(r, member, field->size);
        break;
    case WIRE_NUMBER:
        v = read_number(r, field->size);
        if (field->size == sizeof(uint16_t))
            *(uint16_t *)(void *)member = (uint16_t)v;
        else
            *(uint32_t *)(void *)member = v;
        break;
    case WIRE_FLAG:
        v = reader_u8(r);
        r->failed |= v > 1;
        *(bool *)member = v == 1;
        break;
    case WIRE_TEXT:
        /* The message is zero before, so the text is terminated. */
        v = reader_u8(r);
        if (v >= field->size)
            r->failed = true;
        else
            reader_copy(r, member, v);
        r->failed |= strnlen(member, field->size) != v;
        break;
    }
}

static bool is_in_bounds(const struct service_wire *m)
{
    switch (m->type) {
    case SERVICE_WIRE_CONFIG:
        /* The name of the interface becomes part of file names. */
        return !strchr(m->interface, '/') && m->interface[0] != '.' && m->port != 0;
    case SERVICE_WIRE_LIST:
        return m->n <= SERVICE_WIRE_MEMBERS_MAX;
    case SERVICE_WIRE_JOBS:
        return m->n <= SERVICE_WIRE_JOBS_MAX;
    case SERVICE_WIRE_MEMBER:
    case SERVICE_WIRE_LOOK:
        return true;
    case SERVICE_WIRE_NONE:
    case SERVICE_WIRE_N:
        break;
    }
    return false;
}

int service_wire_decode(struct service_wire *ret, const void *p, size_t len, size_t *ret_used)
{
    struct service_wire m = {.type = SERVICE_WIRE_NONE};
    struct reader r = reader_make(p, len);
    size_t size = read_number(&r, SERVICE_WIRE_HEAD);
    uint8_t type;

    if (r.failed)
        return SERVICE_WIRE_E_SHORT;
    if (size < 1 || size > SERVICE_WIRE_MAX)
        return SERVICE_WIRE_E_BAD;
    if (size > reader_left(&r))
        return SERVICE_WIRE_E_SHORT;
    r = reader_make(r.p, size);
    type = reader_u8(&r);
    if (type >= SERVICE_WIRE_N)
        return SERVICE_WIRE_E_BAD;
    m.type = type;
    for (size_t i = 0; i < N_FIELDS; i++)
        if (is_there(&wire_fields[i], &m))
            decode_field(&r, &wire_fields[i], (char *)&m + wire_fields[i].offset);
    if (r.failed || reader_left(&r) > 0 || !is_in_bounds(&m))
        return SERVICE_WIRE_E_BAD;
    *ret = m;
    *ret_used = SERVICE_WIRE_HEAD + size;
    return 0;
}
