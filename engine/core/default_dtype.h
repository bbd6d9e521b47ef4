/* default_dtype.h: the dtype of floating results where none is given, for the whole process. */
#ifndef TD_CORE_DEFAULT_DTYPE_H
#define TD_CORE_DEFAULT_DTYPE_H

#include "engine/core/dtype.h"

/* From here on td_default_dtype() is this floating dtype; it is float32 at first. */
td_status td_set_default_dtype(td_dtype dtype);

#endif
