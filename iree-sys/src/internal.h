// What IREE's GPU drivers know and their API does not tell: how a kernel is launched, and where a buffer's bytes are.
//
// Implemented in `internal.c`, the one file that depends on internal headers. Everything in them can change with a version of
// IREE; the build fails then, or the tests of recorded plans do.
#ifndef ROTINI_IREE_INTERNAL_H_
#define ROTINI_IREE_INTERNAL_H_

#include "iree/base/api.h"
#include "iree/hal/api.h"

// How a function of an executable is launched.
typedef struct rotini_kernel_t {
  // `hipFunction_t` or `CUfunction`.
  void* function;
  // Threads per workgroup, unless a dispatch says otherwise.
  uint32_t block[3];
  // Bytes of dynamic shared memory.
  uint32_t shared_bytes;
  // Kernel parameters: first this many pointers ...
  uint32_t bindings;
  // ... then this many 32-bit constants.
  uint32_t constants;
} rotini_kernel_t;

// Looks up a function. `executable` was prepared by a HIP device; it belongs to one GPU.
iree_status_t rotini_hip_kernel(iree_hal_executable_t* executable, iree_hal_executable_function_t function,
                                rotini_kernel_t* out_kernel);

// The device address of a buffer's first byte. `buffer` is one of a HIP device, or a part of one.
uint64_t rotini_hip_address(iree_hal_buffer_t* buffer);

#ifdef ROTINI_IREE_CUDA
// As for HIP.
iree_status_t rotini_cuda_kernel(iree_hal_executable_t* executable, iree_hal_executable_function_t function,
                                 rotini_kernel_t* out_kernel);
uint64_t rotini_cuda_address(iree_hal_buffer_t* buffer);
#endif

#endif  // ROTINI_IREE_INTERNAL_H_
