/* compile_log.h: what is compiled on threads of the engine's own, kept for those who record: the
 * CPU's source of activities (activity.h). Costs a load and a branch while nobody does. */
#ifndef TD_CORE_COMPILE_LOG_H
#define TD_CORE_COMPILE_LOG_H

#include <stdint.h>

/* The rows that they are shown on: the streams of these activities. */
typedef enum td_compiler { TD_COMPILER_CODE, TD_COMPILER_GRAPHS, TD_COMPILERS } td_compiler;

/* Who asked for it: noted on the asker's thread. */
typedef struct td_compile_request {
    uint32_t thread; /* 0: not known, nobody recorded then */
    uint64_t at_ns;
} td_compile_request;
td_compile_request td_compile_request_now(void);

/* The moment at which something begins; 0: nobody records. */
uint64_t td_compile_begin(void);
/* It has been done. "WHAT NAME" is what people read, cut at 200 characters. */
void td_compile_end(uint64_t began_ns, td_compiler compiler, td_compile_request request,
                    const char *what, const char *name);

/* When the engine starts: whoever records may ask for the log. */
void td_compile_log_announce(void);

#endif
