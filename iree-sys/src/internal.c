// The one file that uses internals of IREE's drivers; see `internal.h`.
#include "internal.h"

#include "iree/hal/drivers/hip/hip_buffer.h"
#include "iree/hal/drivers/hip/native_executable.h"
#ifdef ROTINI_IREE_CUDA
#include "iree/hal/drivers/cuda/cuda_buffer.h"
#include "iree/hal/drivers/cuda/native_executable.h"
#endif

// The parameters have the same names in both drivers.
#define ROTINI_COPY_KERNEL(params, shared, out)                    \
  do {                                                             \
    (out)->function = (void*)(params)->function;                   \
    memcpy((out)->block, (params)->block_dims, sizeof(out->block)); \
    (out)->shared_bytes = (shared);                                \
    (out)->bindings = (params)->binding_count;                     \
    (out)->constants = (params)->constant_count;                   \
  } while (0)

iree_status_t rotini_hip_kernel(iree_hal_executable_t* executable, iree_hal_executable_function_t function,
                                rotini_kernel_t* out_kernel) {
  const iree_hal_hip_kernel_params_t* params = NULL;
  IREE_RETURN_IF_ERROR(
      iree_hal_hip_native_executable_lookup_kernel_params(executable, function, /*queue_affinity=*/0, &params));
  // The driver launches without dynamic shared memory.
  ROTINI_COPY_KERNEL(params, 0, out_kernel);
  return iree_ok_status();
}

uint64_t rotini_hip_address(iree_hal_buffer_t* buffer) {
  const uintptr_t base = (uintptr_t)iree_hal_hip_buffer_device_pointer(iree_hal_buffer_allocated_buffer(buffer));
  return (uint64_t)base + iree_hal_buffer_byte_offset(buffer);
}

#ifdef ROTINI_IREE_CUDA
iree_status_t rotini_cuda_kernel(iree_hal_executable_t* executable, iree_hal_executable_function_t function,
                                 rotini_kernel_t* out_kernel) {
  const iree_hal_cuda_kernel_params_t* params = NULL;
  IREE_RETURN_IF_ERROR(iree_hal_cuda_native_executable_lookup_kernel_params(executable, function, &params));
  ROTINI_COPY_KERNEL(params, params->block_shared_memory_size, out_kernel);
  return iree_ok_status();
}

uint64_t rotini_cuda_address(iree_hal_buffer_t* buffer) {
  return (uint64_t)iree_hal_cuda_buffer_device_pointer(iree_hal_buffer_allocated_buffer(buffer)) +
         iree_hal_buffer_byte_offset(buffer);
}
#endif
