/* pin.c - see pin.h. */
#include "noise/pin.h"

#include <string.h>

static const char *const names[] = {"false", "true", "session"};

_Static_assert(sizeof(names) / sizeof(*names) == PIN_N, "a name each");

const char *pin_name(enum pin pin)
{
    return names[pin];
}

bool pin_parse(enum pin *ret, const char *text)
{
    for (int i = 0; i < PIN_N; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum pin)i;
            return true;
        }
    return false;
}
