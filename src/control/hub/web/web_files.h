/*
 * web_files.h - the files of the page, as they lie in the folder beside this, in the program.
 *
 * tools/gen-web makes the table of them; src/control/hub/web/meson.build names them.
 */
#pragma once

#include <stddef.h>

struct web_file {
    const char *name; /* "index.html" */
    const char *type; /* as in Content-Type */
    const char *text;
    size_t len; /* bytes of @text */
};

/** web_files - all of them; the last one has no name. */
extern const struct web_file web_files[];

/** web_file_find() - that of the name; NULL: there is none. */
const struct web_file *web_file_find(const char *name);
