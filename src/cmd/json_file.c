/* json_file.c - see json_file.h. */
#include "cmd/json_file.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "os/statefile.h"

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
