// The part of IREE's runtime API that this crate binds; bindgen and the C compiler both read it.
#include "iree/async/frontier_tracker.h"
#include "iree/async/util/proactor_pool.h"
#include "iree/base/api.h"
#include "iree/hal/api.h"
#include "iree/hal/drivers/hip/api.h"
#include "iree/hal/drivers/local_sync/sync_device.h"
#include "iree/hal/drivers/local_task/task_device.h"
#include "iree/hal/local/loaders/embedded_elf_loader.h"
#include "iree/modules/hal/debugging.h"
#include "iree/modules/hal/module.h"
#include "iree/modules/hal/types.h"
#include "iree/task/executor.h"
#include "iree/task/topology.h"
#include "iree/vm/api.h"
#include "iree/vm/bytecode/module.h"
#ifdef ROTINI_IREE_CUDA
#include "iree/hal/drivers/cuda/api.h"
#endif
