/* version.h: which Tide this is. */
#ifndef TD_CORE_VERSION_H
#define TD_CORE_VERSION_H

/* "MAJOR.MINOR.PATCH" of the library that runs; a text that is never freed. */
const char *td_version(void);

#endif
