/* removed.c - see removed.h. */
#include "agent/state/removed.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/state/state.h"
#include "api/content/body.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"
#include "os/statefile.h"

#define FILE_NAME "removed.json"
#define FILE_MAX  8192

static const char *path_of(const char *dir, char buf[static PATH_MAX])
{
    (void)snprintf(buf, PATH_MAX, "%.*s/" FILE_NAME, STATE_DIR_MAX, dir);
    return buf;
}

void removed_set_reason(struct removed *rm, const char *reason)
{
    /* Cut between characters: what is not UTF-8 cannot be written as JSON. */
    size_t len = text_cut(reason, strlen(reason), REMOVED_REASON_MAX);

    memcpy(rm->reason, reason, len);
    rm->reason[len] = '\0';
}

int removed_write(const struct removed *rm, const char *dir, struct err *e)
{
    json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:I}", "node", rm->node, "network", rm->network,
        "reason", rm->reason, "socket", rm->socket_path, "at", (json_int_t)rm->at);
    _cleanup_(freep) char *text = body_format(json);
    char path[PATH_MAX];

    json_decref(json);
    if (!text)
        return err_set(e, -ENOMEM, "no memory to write %s", path_of(dir, path));
    return statefile_replace(path_of(dir, path), text, strlen(text), 0600, e);
}

static int decode(struct removed *rm, const json_t *json, const char *path, struct err *e)
{
    struct fields f = fields_make(json, path, e);
    const char *reason = fields_string(&f, "reason", FIELDS_REQUIRED, 0, REMOVED_REASON_MAX);
    const char *socket = fields_string(&f, "socket", FIELDS_REQUIRED, 1, PATH_MAX - 1);
    uint64_t at = 0;

    fields_name(&f, "node", FIELDS_REQUIRED, rm->node);
    fields_name(&f, "network", FIELDS_REQUIRED, rm->network);
    fields_u64(&f, "at", FIELDS_REQUIRED, 0, INT64_MAX, &at);
    rm->at = (int64_t)at;
    (void)snprintf(rm->reason, sizeof(rm->reason), "%s", reason ? reason : "");
    (void)snprintf(rm->socket_path, sizeof(rm->socket_path), "%s", socket ? socket : "");
    return fields_end(&f);
}

int removed_read(struct removed *ret, const char *dir, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    struct removed rm = {.at = 0};
    char path[PATH_MAX];
    json_t *json = NULL;
    size_t len = 0;
    int r = statefile_read(path_of(dir, path), FILE_MAX, &text, &len, e);

    if (r == STATEFILE_E_ABSENT)
        return REMOVED_E_ABSENT;
    if (r == 0 && body_parse(&json, text, len, NULL) != 0)
        r = err_set(e, -EINVAL, "%s is damaged", path);
    if (r == 0)
        r = decode(&rm, json, path, e);
    json_decref(json);
    if (r == 0)
        *ret = rm;
    return r;
}

int removed_forget(const char *dir, struct err *e)
{
    char path[PATH_MAX];

    if (unlink(path_of(dir, path)) < 0 && errno != ENOENT)
        return err_set(e, -errno, "%s cannot be removed: %s", path, strerror(errno));
    return 0;
}

const char *removed_explain(const struct removed *rm, char buf[static REMOVED_TEXT_MAX])
{
    time_t when = (time_t)rm->at;
    char text[40] = "";
    struct tm utc;

    if (gmtime_r(&when, &utc))
        (void)strftime(text, sizeof(text), " on %Y-%m-%d %H:%M:%S UTC", &utc);
    (void)snprintf(buf, REMOVED_TEXT_MAX,
        "this node, \"%s\", was removed from the network %s by its hub%s%s%s", rm->node,
        rm->network, text, rm->reason[0] ? ": " : "", rm->reason);
    return buf;
}
