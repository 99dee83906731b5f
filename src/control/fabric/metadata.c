/* metadata.c - see metadata.h: which cloud this is, what it is asked, and the decoder of the
 * answers. */
#include "fabric/metadata.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "http/http_exchange.h"
#include "os/clock.h"
#include "os/file.h"

/* What a metadata service is asked for: single values, so that nothing else of the machine, such as
 * its start-up script, is ever read. */
struct metadata_question {
    const char *name; /* in the answers, and for people */
    const char *path; /* of the request */
    size_t offset;    /* of the field in struct metadata_place */
};

#define QUESTIONS 3 /* to each service */

#define FIELD(field) offsetof(struct metadata_place, field)
#define AWS(path)    "/latest/meta-data/" path
#define GCE(path)    "/computeMetadata/v1/instance/" path
#define AZURE(name)  "/metadata/instance/compute/" name "?api-version=2021-02-01&format=text"

/* Azure shares its vendor and product with every machine of Hyper-V; its asset tag is its own
 * (Microsoft: "cloud-init, DataSourceAzure"). */
static const struct cloud {
    const char *name;
    const char *dmi;    /* the text that tells its machines from others, */
    const char *says;   /* and what that is there */
    const char *header; /* of each request; of AWS's first one */
    struct metadata_question questions[QUESTIONS];
} clouds[] = {
    [METADATA_CLOUD_NONE] = {.name = "none"},
    [METADATA_CLOUD_AWS] = {"aws", "sys_vendor", "Amazon EC2",
        "X-aws-ec2-metadata-token-ttl-seconds: 60",
        {{"instance-type", AWS("instance-type"), FIELD(machine)},
            {"availability-zone-id", AWS("placement/availability-zone-id"), FIELD(zone)},
            {"group-name", AWS("placement/group-name"), FIELD(group)}}},
    [METADATA_CLOUD_GCE] = {"gce", "product_name", "Google Compute Engine",
        "Metadata-Flavor: Google",
        {{"machine-type", GCE("machine-type"), FIELD(machine)}, {"zone", GCE("zone"), FIELD(zone)},
            {"physical_host", GCE("attributes/physical_host"), FIELD(host)}}},
    [METADATA_CLOUD_AZURE] = {"azure", "chassis_asset_tag", "7783-7084-3265-9085-8269-3286-77",
        "Metadata: true",
        {{"vmSize", AZURE("vmSize"), FIELD(machine)}, {"location", AZURE("location"), FIELD(zone)},
            {"placementGroupId", AZURE("placementGroupId"), FIELD(group)}}},
};
_Static_assert(sizeof(clouds) / sizeof(*clouds) == METADATA_CLOUD_N, "one for each");

const char *metadata_cloud_name(enum metadata_cloud c)
{
    return clouds[c].name;
}

enum metadata_cloud metadata_cloud_of(const struct tree *t)
{
    char path[64];
    char text[64];

    for (enum metadata_cloud c = METADATA_CLOUD_NONE + 1; c < METADATA_CLOUD_N; c++) {
        (void)snprintf(path, sizeof(path), "/sys/class/dmi/id/%s", clouds[c].dmi);
        if (tree_read(t, path, text, sizeof(text)) && strcmp(text, clouds[c].says) == 0)
            return c;
    }
    return METADATA_CLOUD_NONE;
}

/* ---- the answers ---------------------------------------------------------------------------- */

/*
 * Takes a field of @len bytes. What a cloud calls its types, zones, groups and hosts is made of
 * printable characters; a placement group may have a space in it.
 */
static int take(char *field, const char *name, const char *text, size_t len, struct err *e)
{
    if (len >= METADATA_FIELD_MAX)
        return err_set(e, -EINVAL,
            "the metadata service says a %s of %zu bytes, and %d are allowed", name, len,
            METADATA_FIELD_MAX - 1);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] > '~')
            return err_set(e, -EINVAL,
                "the metadata service says a %s with the byte 0x%02x, and only printable ASCII is "
                "allowed",
                name, (unsigned char)text[i]);
    memcpy(field, text, len);
    field[len] = '\0';
    return 0;
}

static int take_line(struct metadata_place *p, enum metadata_cloud cloud, const char *line,
    size_t len, struct err *e)
{
    for (unsigned i = 0; cloud != METADATA_CLOUD_NONE && i < QUESTIONS; i++) {
        const struct metadata_question *q = &clouds[cloud].questions[i];
        size_t name_len = strlen(q->name);

        if (len > name_len && strncmp(line, q->name, name_len) == 0 && line[name_len] == ' ')
            return take((char *)p + q->offset, q->name, line + name_len + 1, len - name_len - 1, e);
    }
    return 0;
}

/* Of "projects/123/zones/us-east4-a" keeps the last part, as people know it. */
static void keep_last_part(char text[static METADATA_FIELD_MAX])
{
    char *slash = strrchr(text, '/');

    if (slash)
        memmove(text, slash + 1, strlen(slash + 1) + 1);
}

/* "/CLUSTER/BLOCK/HOST": each is a name that tells nothing but whether two machines share it. */
static int split_host(struct metadata_place *p, struct err *e)
{
    char *text = p->host;
    char *host = strrchr(text, '/');
    const char *block = text[0] == '/' ? strchr(text + 1, '/') : NULL;

    if (text[0] == '\0')
        return 0;
    if (!block || !host || host == block || strchr(block + 1, '/') != host || host[1] == '\0')
        return err_set(e, -EINVAL,
            "the metadata service says the physical_host \"%.60s\", which is not "
            "/CLUSTER/BLOCK/HOST",
            text);
    memmove(text, text + 1, strlen(text));
    (void)snprintf(p->block, sizeof(p->block), "%.*s", (int)(host - 1 - text), text);
    return 0;
}

int metadata_decode(struct metadata_place *ret, const struct metadata_answers *a, struct err *e)
{
    struct metadata_place p = {.asked_together = false};
    const char *text = a->text;
    int r = 0;

    while (r == 0 && *text != '\0') {
        size_t len = strcspn(text, "\n");

        r = take_line(&p, a->cloud, text, len, e);
        text += len + (text[len] == '\n');
    }
    if (r == 0 && a->cloud == METADATA_CLOUD_GCE) {
        keep_last_part(p.machine);
        keep_last_part(p.zone);
        r = split_host(&p, e);
    }
    p.asked_together = p.group[0] != '\0';
    if (r == 0)
        *ret = p;
    return r;
}

/* ==== asking the metadata service ============================================================ */

/*
 * The address is link-local and answers on no network but a cloud's own. Nothing is asked unless
 * the machine's DMI texts name that cloud (metadata_cloud_of()).
 */

#define SERVICE "http://169.254.169.254"

/* Bytes of a header with a token; an answer may be half as long. */
#define METADATA_TOKEN_MAX 1024

/* The requests, one after the other. */
struct asking {
    struct http_exchange x;          /* owns: the last of them, with its answer */
    char header[METADATA_TOKEN_MAX]; /* of each request */
    long deadline_ms;                /* monotonic */
};

static long now_ms(void)
{
    return (long)(clock_now() / NSEC_PER_MSEC);
}

/* Asks with the header of @a. Return: 0; -ENOENT, the service does not know it; -EIO. */
static int ask_service(struct asking *a, const char *method, const char *path, struct err *e)
{
    long left = a->deadline_ms - now_ms();
    char url[256];
    int status;
    CURLcode code;

    http_exchange_deinit(&a->x);
    (void)snprintf(url, sizeof(url), SERVICE "%s", path);
    if (!http_exchange_init(&a->x, method, url, METADATA_TOKEN_MAX / 2 - 1) ||
        !http_exchange_add_header(&a->x, a->header))
        return err_set(e, -ENOMEM, "no memory to ask the metadata service");
    curl_easy_setopt(a->x.easy, CURLOPT_TIMEOUT_MS, left > 1 ? left : 1L);
    code = curl_easy_perform(a->x.easy);
    status = http_exchange_status(&a->x);
    if (status == 404)
        return err_set(e, -ENOENT, "the metadata service does not know %s", path);
    if (a->x.is_too_long)
        return err_set(e, -EIO, "the metadata service's answer for %s is longer than %zu bytes",
            path, a->x.max);
    if (code != CURLE_OK)
        return err_set(e, -EIO, "asking the metadata service for %s: %s", path,
            http_exchange_reason(&a->x, code));
    if (status < 200 || status > 299)
        return err_set(e, -EIO, "the metadata service answers %d when asked for %s", status, path);
    return 0;
}

/* AWS answers only those who have asked for a token first (IMDSv2). */
static int prepare_aws(struct asking *a, struct err *e)
{
    int r = ask_service(a, "PUT", "/latest/api/token", e);

    if (r != 0)
        return r;
    /* It fits: an answer is at most half as long as a header. */
    (void)snprintf(
        a->header, sizeof(a->header), "X-aws-ec2-metadata-token: %s", str_text(&a->x.got));
    return strpbrk(a->header, "\r\n")
               ? err_set(e, -EPROTO, "the metadata service's token is no token")
               : 0;
}

/* Appends "NAME VALUE". An answer of several lines is cut at the first one. */
static int ask_one(struct asking *a, struct metadata_answers *ret,
    const struct metadata_question *q, struct err *e)
{
    size_t len = strlen(ret->text);
    int r = ask_service(a, "GET", q->path, e);

    if (r != 0)
        return r == -ENOENT ? 0 : r;
    (void)snprintf(ret->text + len, sizeof(ret->text) - len, "%s %.*s\n", q->name,
        (int)strcspn(str_text(&a->x.got), "\r\n"), str_text(&a->x.got));
    return 0;
}

int metadata_fetch(
    struct metadata_answers *ret, enum metadata_cloud cloud, unsigned timeout_ms, struct err *e)
{
    struct asking a = {.deadline_ms = now_ms() + (long)timeout_ms};
    int r = 0;

    *ret = (struct metadata_answers){.cloud = cloud};
    if (cloud == METADATA_CLOUD_NONE)
        return err_set(e, -ENOTSUP, "this machine is of no cloud that says where it runs");
    (void)snprintf(a.header, sizeof(a.header), "%s", clouds[cloud].header);
    if (cloud == METADATA_CLOUD_AWS)
        r = prepare_aws(&a, e);
    for (unsigned i = 0; r == 0 && i < QUESTIONS; i++)
        r = ask_one(&a, ret, &clouds[cloud].questions[i], e);
    http_exchange_deinit(&a.x);
    return r;
}

/* ==== text files below a root ================================================================ */

static bool make_path(const struct tree *t, const char *path, char out[static PATH_MAX])
{
    return snprintf(out, PATH_MAX, "%s%s", t->root, path) < PATH_MAX;
}

bool tree_read(const struct tree *t, const char *path, char *ret, size_t cap)
{
    char full[PATH_MAX];
    size_t len = 0;
    ssize_t n = 1;
    _cleanup_(closep) int fd =
        make_path(t, path, full) ? open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

    ret[0] = '\0';
    if (fd < 0)
        return false;
    while (n > 0 && len + 1 < cap) {
        n = read(fd, ret + len, cap - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    while (len > 0 && (unsigned char)ret[len - 1] <= ' ')
        len--;
    ret[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)ret[i] < ' ' && ret[i] != '\n')
            ret[i] = ' ';
    return ret[0] != '\0';
}

bool tree_has(const struct tree *t, const char *path)
{
    char full[PATH_MAX];

    return make_path(t, path, full) && access(full, F_OK) == 0;
}

static int compare_names(const void *a, const void *b)
{
    return strverscmp(a, b);
}

size_t tree_list(const struct tree *t, const char *dir, char (*ret)[TREE_NAME_MAX], size_t max)
{
    char full[PATH_MAX];
    size_t n = 0;
    _cleanup_(closedirp) DIR *d = make_path(t, dir, full) ? opendir(full) : NULL;
    const struct dirent *entry;

    while (d && n < max && (entry = readdir(d)))
        if (entry->d_name[0] != '.' && strlen(entry->d_name) < TREE_NAME_MAX)
            memcpy(ret[n++], entry->d_name, strlen(entry->d_name) + 1);
    qsort(ret, n, sizeof(*ret), compare_names);
    return n;
}
