/* tf32.h: may devices round float32 factors to TF32? */
#ifndef TD_CORE_TF32_H
#define TD_CORE_TF32_H

#include <stdbool.h>

typedef enum td_tf32_use {
    TD_TF32_PRODUCTS,     /* of matrices; not allowed at the start */
    TD_TF32_CONVOLUTIONS, /* allowed at the start */
    TD_TF32_USES
} td_tf32_use;

/* May float32 factors be rounded to ten bits of mantissa, which is up to eight times as fast on
 * devices that have it? Sums stay float32. Of the whole process; read when a call is handed to the
 * device. */
bool td_tf32_allowed(td_tf32_use use);
void td_set_tf32_allowed(td_tf32_use use, bool allowed);

#endif
