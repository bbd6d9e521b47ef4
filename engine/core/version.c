/* version.c: the one object that is compiled anew when the project's version changes. */
#include "engine/core/version.h"

const char *td_version(void) {
    return TIDE_VERSION;
}
