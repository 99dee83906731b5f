/* price_table.c - see price_table.h. */
#include "cmd/price_table.h"

#include <errno.h>

#include "base/err.h"
#include "mesh/object/prices.h"
#include "os/file.h"

#define TABLE_MAX (1u << 20) /* bytes */

int price_table_read(struct prices *ret, json_t **ret_json, const char *path, struct err *e)
{
    json_auto_t *json = NULL;
    int r = json_file_read(&json, path, TABLE_MAX, e);

    if (r < 0)
        return r;
    r = prices_decode(ret, json, OBJECT_STRICT, e);
    if (r == 0 && ret_json)
        *ret_json = json_incref(json);
    return r == 0 ? 0 : err_prefix(e, "%.200s", path);
}

/* ==== a file of JSON ========================================================================= */

int json_file_read(json_t **ret, const char *path, size_t max, struct err *e)
{
    _cleanup_(freep) char *text = NULL;
    json_error_t where;
    json_t *json;
    size_t len = 0;
    int r = statefile_read(path, max, &text, &len, e);

    if (r == STATEFILE_E_ABSENT)
        return err_set(e, -ENOENT, "%.200s does not exist", path);
    if (r < 0)
        return r;
    json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
    if (!json)
        return err_set(e, -EINVAL, "%.200s is no JSON: line %d: %s", path, where.line, where.text);
    *ret = json;
    return 0;
}
