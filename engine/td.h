/* td.h: all of libtide. What these headers declare is what the library exports (exports.cmake). */
#ifndef TD_H
#define TD_H

#include "engine/autograd/autograd.h"
#include "engine/autograd/function.h"
#include "engine/autograd/hooks.h"
#include "engine/autograd/saved.h"
#include "engine/core/backend.h"
#include "engine/core/device.h"
#include "engine/core/draft.h"
#include "engine/core/dtype.h"
#include "engine/core/format.h"
#include "engine/core/interrupt.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/number.h"
#include "engine/core/observer.h"
#include "engine/core/random.h"
#include "engine/core/sparse.h"
#include "engine/core/status.h"
#include "engine/core/tensor.h"
#include "engine/core/threads.h"
#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "engine/ops/autocast.h"
#include "engine/ops/foreach.h"
#include "engine/ops/index.h"
#include "engine/ops/op.h"
#include "engine/ops/schema.h"

#endif
