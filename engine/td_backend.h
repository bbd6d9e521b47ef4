/* td_backend.h: what a device's module (engine/cuda) takes of libtide besides td.h: exported as
 * well. */
#ifndef TD_BACKEND_H
#define TD_BACKEND_H

#include "engine/ops/copy.h"
#include "engine/ops/frame.h"
#include "engine/ops/plan.h"
#include "engine/ops/program.h"
#include "engine/ops/reduction.h"

#endif
