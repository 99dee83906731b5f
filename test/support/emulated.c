/* emulated.c - see emulated.h. */
#include "test/support/emulated.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* Of what processor the other programs of this machine are told to be. */
static bool ask_others(char *ret, size_t size)
{
    FILE *f = popen("uname -m", "re");
    bool has_line;

    if (!f)
        return false;
    has_line = fgets(ret, (int)size, f) != NULL;
    (void)pclose(f);
    ret[has_line ? strcspn(ret, "\n") : 0] = '\0';
    return ret[0] != '\0';
}

bool emulated_lacks(const char *what)
{
    struct utsname ours;
    char others[sizeof(ours.machine)];

    if (uname(&ours) != 0 || !ask_others(others, sizeof(others)) ||
        strcmp(ours.machine, others) == 0)
        return false;
    (void)fprintf(stderr, "skipped: an emulator on %s runs this %s program, and has no %s\n",
        others, ours.machine, what);
    return true;
}
