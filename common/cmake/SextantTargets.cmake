# SPDX-License-Identifier: Apache-2.0
# How every target of the suite is made. One helper per kind of target, so that rooms look alike.
include_guard()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(SEXTANT_CCACHE ccache)
if(SEXTANT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SEXTANT_CCACHE})
endif()

# Same request, same bytes: no fused multiply-add that differs between builds.
add_compile_options(-ffp-contract=off)
if(SEXTANT_SANITIZE)
  if(SEXTANT_SANITIZE MATCHES "thread" AND SEXTANT_SANITIZE MATCHES "address")
    message(FATAL_ERROR "SEXTANT_SANITIZE: 'thread' and 'address' exclude each other; choose one")
  endif()
  add_compile_options(-fsanitize=${SEXTANT_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  # GCC takes libstdc++'s std::regex for uninitialized under sanitizers (GCC bug 105562).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  add_link_options(-fsanitize=${SEXTANT_SANITIZE})
endif()

if(SEXTANT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

function(sextant_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                           -Wold-style-cast -Wconversion -Wno-sign-conversion
                                           # designated initialisers leave defaults on purpose
                                           -Wno-missing-field-initializers)
  if(SEXTANT_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# sextant_library(NAME <room> SRCS ... [DEPS ...] [PRIVATE_DEPS ...] [TESTS x_test.cc ...]
#                 [TEST_DEPS ...] [BENCHMARKS x_benchmark.cc ...])
# Makes the library sextant_<room> (alias sextant::<room>), one test binary per file in TESTS and
# one benchmark binary per file in BENCHMARKS. A room without SRCS is header-only.
function(sextant_library)
  cmake_parse_arguments(ARG "" "NAME" "SRCS;DEPS;PRIVATE_DEPS;TESTS;TEST_DEPS;BENCHMARKS" ${ARGN})
  set(target sextant_${ARG_NAME})
  if(ARG_SRCS)
    add_library(${target} STATIC ${ARG_SRCS})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
    sextant_warnings(${target})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
  endif()
  add_library(sextant::${ARG_NAME} ALIAS ${target})
  foreach(test IN LISTS ARG_TESTS)
    sextant_test(SRC ${test} DEPS sextant::${ARG_NAME} ${ARG_TEST_DEPS} LABEL unit)
  endforeach()
  if(SEXTANT_BUILD_BENCHMARKS)
    foreach(bench IN LISTS ARG_BENCHMARKS)
      get_filename_component(name ${bench} NAME_WE)
      add_executable(${name} ${bench})
      target_link_libraries(${name} PRIVATE sextant::${ARG_NAME} ${ARG_TEST_DEPS}
                                            benchmark::benchmark benchmark::benchmark_main)
      sextant_warnings(${name})
    endforeach()
  endif()
endfunction()

# sextant_test(SRC x_test.cc [DEPS ...] [LABEL unit|property|golden|contract|integration|e2e])
function(sextant_test)
  if(NOT SEXTANT_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "SRC;LABEL" "DEPS" ${ARGN})
  get_filename_component(name ${ARG_SRC} NAME_WE)
  add_executable(${name} ${ARG_SRC})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE SEXTANT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             SEXTANT_BINARY_DIR="${PROJECT_BINARY_DIR}")
  sextant_warnings(${name})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${SEXTANT_TEST_SECONDS})
endfunction()

# sextant_proto_library(NAME protos_<package> PROTOS a.proto ... [DEPS ...] [GRPC])
# Paths are relative to protos/. With GRPC the service stubs are generated as well.
function(sextant_proto_library)
  cmake_parse_arguments(ARG "GRPC" "NAME" "PROTOS;DEPS" ${ARGN})
  set(target sextant_${ARG_NAME})
  add_library(${target} STATIC ${ARG_PROTOS})
  add_library(sextant::${ARG_NAME} ALIAS ${target})
  set(out ${CMAKE_CURRENT_BINARY_DIR})
  protobuf_generate(TARGET ${target} LANGUAGE cpp IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR}
                    PROTOC_OUT_DIR ${out})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
  if(ARG_GRPC)
    protobuf_generate(TARGET ${target} LANGUAGE grpc IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR}
                      PROTOC_OUT_DIR ${out} GENERATE_EXTENSIONS .grpc.pb.h .grpc.pb.cc
                      PLUGIN "protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>")
    target_link_libraries(${target} PUBLIC gRPC::grpc++)
  endif()
  # SYSTEM: generated code is not ours to lint.
  target_include_directories(${target} SYSTEM PUBLIC ${out})
endfunction()
