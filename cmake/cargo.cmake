# Cargo as a part of a CMake build.
#
# Corrosion does this for projects that link Rust code into C++. Here nothing links: three files are made and installed. Its targets
# are IMPORTED, which hooks of a super-project do not see either, and it would have to be vendored to work offline.

find_program(ROTINI_CARGO cargo HINTS "$ENV{CARGO_HOME}/bin" "$ENV{HOME}/.cargo/bin" REQUIRED
             DOC "Cargo, with the Rust that rust-toolchain.toml names")

# rotini_cargo_build(NAME PACKAGES package... OUTPUTS file... PLUGIN_RPATH path)
#
# A target NAME, part of `all`, that builds the packages for CMAKE_BUILD_TYPE. NAME_DIR is the directory that the outputs are in.
function(rotini_cargo_build name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PLUGIN_RPATH" "PACKAGES;OUTPUTS")

  set(target_dir "${ROTINI_CARGO_TARGET_DIR}")
  if(NOT target_dir)
    set(target_dir "${CMAKE_CURRENT_BINARY_DIR}/cargo")
  endif()

  set(environment "CARGO_TARGET_DIR=${target_dir}" "ROTINI_PLUGIN_RPATH=${arg_PLUGIN_RPATH}")
  # Crates with C and C++ in them, and the linker, use the compilers of this build.
  list(APPEND environment "CC=${CMAKE_C_COMPILER}" "CXX=${CMAKE_CXX_COMPILER}" "CMAKE=${CMAKE_COMMAND}")
  if(CMAKE_AR)
    list(APPEND environment "AR=${CMAKE_AR}")
  endif()
  set(c_flags "${CMAKE_C_FLAGS}")
  set(cxx_flags "${CMAKE_CXX_FLAGS}")
  if(ROTINI_PORTABLE)
    rotini_portable("${target_dir}" rust_flags portable_c_flags)
    string(APPEND c_flags " ${portable_c_flags}")
    string(APPEND cxx_flags " ${portable_c_flags}")
    # The compiler of the machine that builds is not that of the machine that runs.
    list(APPEND environment --unset=ROTINI_IREE_COMPILE --unset=ROTINI_IREE_COMPILER_LIB "RUSTFLAGS=$ENV{RUSTFLAGS} ${rust_flags}")
  endif()
  string(STRIP "${c_flags}" c_flags)
  string(STRIP "${cxx_flags}" cxx_flags)
  if(c_flags)
    list(APPEND environment "CFLAGS=${c_flags}")
  endif()
  if(cxx_flags)
    list(APPEND environment "CXXFLAGS=${cxx_flags}")
  endif()
  rotini_host_triple(triple)
  string(TOUPPER "${triple}" triple)
  string(REPLACE "-" "_" triple "${triple}")
  if(NOT ROTINI_LINKER)
    set(ROTINI_LINKER "${CMAKE_C_COMPILER}")
  endif()
  list(APPEND environment "CARGO_TARGET_${triple}_LINKER=${ROTINI_LINKER}")

  if(ROTINI_HIP_HEADERS)
    list(APPEND environment "ROTINI_HIP_HEADERS=${ROTINI_HIP_HEADERS}")
  endif()

  # Said by the environment and not by arguments: a build script calls Cargo too.
  if(ROTINI_VENDOR_DIR)
    set(home "${CMAKE_CURRENT_BINARY_DIR}/cargo-home")
    file(WRITE "${home}/config.toml"
      "[source.crates-io]\nreplace-with = \"vendored\"\n[source.vendored]\ndirectory = \"${ROTINI_VENDOR_DIR}\"\n")
    list(APPEND environment "CARGO_HOME=${home}")
  endif()
  if(ROTINI_CARGO_OFFLINE OR ROTINI_VENDOR_DIR)
    list(APPEND environment "CARGO_NET_OFFLINE=true")
  endif()

  set(profile --release)
  set(output_dir release)
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(profile)
    set(output_dir debug)
  elseif(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
    list(APPEND environment "CARGO_PROFILE_RELEASE_DEBUG=line-tables-only" "CARGO_PROFILE_RELEASE_STRIP=none")
  elseif(CMAKE_BUILD_TYPE STREQUAL "MinSizeRel")
    list(APPEND environment "CARGO_PROFILE_RELEASE_OPT_LEVEL=s")
  endif()

  list(TRANSFORM arg_PACKAGES PREPEND "--package=")
  set(byproducts "${arg_OUTPUTS}")
  list(TRANSFORM byproducts PREPEND "${target_dir}/${output_dir}/")
  # Cargo knows what is stale, so it is asked each time.
  add_custom_target("${name}" ALL
    COMMAND "${CMAKE_COMMAND}" -E env ${environment}
            "${ROTINI_CARGO}" build --locked ${profile} ${arg_PACKAGES}
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    BYPRODUCTS ${byproducts}
    COMMENT "Cargo builds rotini"
    USES_TERMINAL
    VERBATIM
  )
  set("${name}_DIR" "${target_dir}/${output_dir}" PARENT_SCOPE)
endfunction()

# rotini_portable(TARGET_DIR RUST_FLAGS C_FLAGS)
#
# Flags for files that are the same bytes wherever they are built.
#
# libstdc++ and libgcc stay shared libraries. Linked statically, the plugin has a second unwinder,
# and then the host aborts when its logging function throws: two unwinders cannot pass an exception
# on.
function(rotini_portable target_dir rust_flags c_flags)
  set(cargo_home "$ENV{CARGO_HOME}")
  if(NOT cargo_home)
    set(cargo_home "$ENV{HOME}/.cargo")
  endif()
  set(maps "${cargo_home}=/cargo")
  if(ROTINI_VENDOR_DIR)
    list(APPEND maps "${ROTINI_VENDOR_DIR}=/cargo/vendor")
  endif()
  # The last that fits is taken.
  list(APPEND maps "${CMAKE_CURRENT_SOURCE_DIR}=/rotini" "${target_dir}=/rotini/target")

  set(rust "")
  set(c "")
  foreach(map IN LISTS maps)
    string(APPEND rust " --remap-path-prefix=${map}")
    string(APPEND c " -ffile-prefix-map=${map}")
  endforeach()
  string(STRIP "${rust}" rust)
  string(STRIP "${c}" c)
  set("${rust_flags}" "${rust}" PARENT_SCOPE)
  set("${c_flags}" "${c}" PARENT_SCOPE)
endfunction()

# The triple that Cargo builds for.
function(rotini_host_triple variable)
  execute_process(
    COMMAND "${ROTINI_CARGO}" --version --verbose
    WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
    OUTPUT_VARIABLE version
    COMMAND_ERROR_IS_FATAL ANY
  )
  if(NOT version MATCHES "\nhost: ([^\n]+)")
    message(FATAL_ERROR "`cargo --version --verbose` names no host:\n${version}")
  endif()
  set("${variable}" "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()
