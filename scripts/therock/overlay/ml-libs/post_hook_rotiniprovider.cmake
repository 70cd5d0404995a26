# TheRock splits debug information out of CMake's targets. Cargo's files are none, so their debug files are made here, by TheRock's own
# script and under its component. THEROCK_SPLIT_DEBUG_INFO wants RelWithDebInfo: Release has no debug information to split.
if(THEROCK_SPLIT_DEBUG_INFO AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  include(CMakeFindBinUtils)
  install(
    CODE "set(THEROCK_DEBUG_BUILD_ID_PATHS
            \"${rotini_cargo_DIR}/librotini_plugin.so\" \"${rotini_cargo_DIR}/rotini-compile-worker\" \"${rotini_cargo_DIR}/rotini\")"
    CODE "set(THEROCK_OBJCOPY \"${CMAKE_OBJCOPY}\")"
    CODE "set(THEROCK_READELF \"${CMAKE_READELF}\")"
    CODE "set(THEROCK_STAGE_INSTALL_ROOT \"${THEROCK_STAGE_INSTALL_ROOT}\")"
    COMPONENT THEROCK_DEBUG_BUILD_ID
  )
  install(SCRIPT "${THEROCK_SOURCE_DIR}/cmake/therock_install_linux_build_id_files.cmake" COMPONENT THEROCK_DEBUG_BUILD_ID)
  # What is staged is stripped, as `cmake --install --strip` does it with targets.
  install(
    CODE "foreach(file lib/hipdnn_plugins/engines/librotini_plugin.so libexec/rotini-compile-worker bin/rotini)
            execute_process(COMMAND \"${CMAKE_STRIP}\" \"${THEROCK_STAGE_INSTALL_ROOT}/\${file}\" COMMAND_ERROR_IS_FATAL ANY)
          endforeach()"
    COMPONENT THEROCK_DEBUG_BUILD_ID
  )
endif()
