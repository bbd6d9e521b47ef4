/* switches.h: process-wide permissions for devices, such as TF32 and cuDNN; read when a call is
 * handed to its device. */
#ifndef TD_CORE_SWITCHES_H
#define TD_CORE_SWITCHES_H

#include <stdbool.h>

typedef enum td_switch {
    /* May float32 factors be rounded to TF32 (ten bits of mantissa), which is up to eight times as
     * fast on devices that have it? Sums stay float32. */
    TD_SWITCH_TF32_PRODUCTS,
    TD_SWITCH_TF32_CONVOLUTIONS, /* on at the start */
    TD_SWITCH_CUDNN,             /* convolutions by cuDNN where it is installed; on at the start */
    TD_SWITCH_CUDNN_MEASURES,    /* it times its algorithms at the first convolution of a shape */
    TD_SWITCH_CUDNN_FIXED,       /* only algorithms whose sums have one order */
    TD_SWITCHES
} td_switch;

bool td_switch_is_on(td_switch which);
void td_switch_set(td_switch which, bool on);

#endif
