/* script.c - see script.h. */
#include "train/job/script.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "train/job/command.h"
#include "train/job/torch.h"

/* torchrun and accelerate take these for what -m and --no_python say. */
static bool environment_says_other(const struct command *c)
{
    return c->kind == COMMAND_KIND_TORCHRUN && (getenv("PET_MODULE") || getenv("PET_NO_PYTHON"));
}

bool script_is_missing(const struct command *c, const struct torch_install *torch)
{
    bool is_python = c->kind == COMMAND_KIND_MPI || torch->python[0] != '\0';

    return c->is_file && is_python && !environment_says_other(c) && access(c->script, F_OK) < 0 &&
           (errno == ENOENT || errno == ENOTDIR);
}

static void say_missing(const struct command *c, struct str *out)
{
    char cwd[PATH_MAX];

    str_addf(out, "the script \"%.200s\" is not there", c->script);
    if (c->script[0] != '/' && getcwd(cwd, sizeof(cwd)))
        str_addf(out, "; it is looked for in %.200s", cwd);
}

int script_check(const struct command *c, const struct torch_install *torch, struct err *e)
{
    struct str out = STR_NULL;
    int r;

    if (c->kind == COMMAND_KIND_MPI || c->kind == COMMAND_KIND_DEEPSPEED ||
        !script_is_missing(c, torch))
        return 0;
    say_missing(c, &out);
    r = err_set(e, -ENOENT, "%s", str_text(&out));
    str_deinit(&out);
    return r;
}

void script_advise(const struct command *c, const struct torch_install *torch, struct str *out)
{
    if (!script_is_missing(c, torch))
        return;
    say_missing(c, out);
    str_add(out, "\n");
}
