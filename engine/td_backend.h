/* td_backend.h: what a device's module (engine/cuda) takes of libtide besides td.h: exported as
 * well. */
#ifndef TD_BACKEND_H
#define TD_BACKEND_H

#include "engine/ops/language/program.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/pointwise_geometry.h"
#include "engine/ops/plan/reduction.h"

#endif
