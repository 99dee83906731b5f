/* web_files.c - see web_files.h. */
#include "hub/web/web_files.h"

#include <string.h>

const struct web_file *web_file_find(const char *name)
{
    for (const struct web_file *f = web_files; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
