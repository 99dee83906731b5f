/* metadata.c - see metadata.h: which cloud this is, what it is asked, and the decoder of the
 * answers. */
#include "fabric/metadata.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "fabric/tree.h"

static const char *const cloud_names[] = {
    [METADATA_CLOUD_NONE] = "none",
    [METADATA_CLOUD_AWS] = "aws",
    [METADATA_CLOUD_GCE] = "gce",
    [METADATA_CLOUD_AZURE] = "azure",
};
_Static_assert(sizeof(cloud_names) / sizeof(*cloud_names) == METADATA_CLOUD_N, "a name for each");

const char *metadata_cloud_name(enum metadata_cloud c)
{
    return cloud_names[c];
}

/*
 * Azure shares its vendor and product with every machine of Hyper-V; its asset tag is its own
 * (Microsoft: "cloud-init, DataSourceAzure").
 */
enum metadata_cloud metadata_cloud_of(const struct tree *t)
{
    char text[64];

    if (tree_read(t, "/sys/class/dmi/id/sys_vendor", text, sizeof(text)) &&
        strcmp(text, "Amazon EC2") == 0)
        return METADATA_CLOUD_AWS;
    if (tree_read(t, "/sys/class/dmi/id/product_name", text, sizeof(text)) &&
        strcmp(text, "Google Compute Engine") == 0)
        return METADATA_CLOUD_GCE;
    if (tree_read(t, "/sys/class/dmi/id/chassis_asset_tag", text, sizeof(text)) &&
        strcmp(text, "7783-7084-3265-9085-8269-3286-77") == 0)
        return METADATA_CLOUD_AZURE;
    return METADATA_CLOUD_NONE;
}

/* ---- the questions -------------------------------------------------------------------------- */

#define FIELD(field) offsetof(struct metadata_place, field)
#define AWS(path)    "/latest/meta-data/" path
#define GCE(path)    "/computeMetadata/v1/instance/" path
#define AZURE(name)  "/metadata/instance/compute/" name "?api-version=2021-02-01&format=text"

static const struct metadata_question aws_questions[] = {
    {"instance-type", AWS("instance-type"), FIELD(machine)},
    {"availability-zone-id", AWS("placement/availability-zone-id"), FIELD(zone)},
    {"group-name", AWS("placement/group-name"), FIELD(group)},
};

static const struct metadata_question gce_questions[] = {
    {"machine-type", GCE("machine-type"), FIELD(machine)},
    {"zone", GCE("zone"), FIELD(zone)},
    {"physical_host", GCE("attributes/physical_host"), FIELD(host)},
};

static const struct metadata_question azure_questions[] = {
    {"vmSize", AZURE("vmSize"), FIELD(machine)},
    {"location", AZURE("location"), FIELD(zone)},
    {"placementGroupId", AZURE("placementGroupId"), FIELD(group)},
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

const struct metadata_question *metadata_questions(enum metadata_cloud cloud, size_t *ret_n)
{
    switch (cloud) {
    case METADATA_CLOUD_AWS:
        *ret_n = COUNT(aws_questions);
        return aws_questions;
    case METADATA_CLOUD_GCE:
        *ret_n = COUNT(gce_questions);
        return gce_questions;
    case METADATA_CLOUD_AZURE:
        *ret_n = COUNT(azure_questions);
        return azure_questions;
    case METADATA_CLOUD_NONE:
    case METADATA_CLOUD_N:
        break;
    }
    *ret_n = 0;
    return NULL;
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
    size_t n;
    const struct metadata_question *q = metadata_questions(cloud, &n);

    for (size_t i = 0; i < n; i++) {
        size_t name_len = strlen(q[i].name);

        if (len > name_len && strncmp(line, q[i].name, name_len) == 0 && line[name_len] == ' ')
            return take(
                (char *)p + q[i].offset, q[i].name, line + name_len + 1, len - name_len - 1, e);
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

bool metadata_recorded(
    struct metadata_answers *ret, const struct tree *t, enum metadata_cloud cloud)
{
    char path[32];

    (void)snprintf(path, sizeof(path), "/metadata/%s", metadata_cloud_name(cloud));
    ret->cloud = cloud;
    return tree_read(t, path, ret->text, sizeof(ret->text));
}
