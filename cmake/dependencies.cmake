# The libraries Tide takes from the system, each as an imported target.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(SLEEF REQUIRED IMPORTED_TARGET sleef)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
pkg_search_module(LUA REQUIRED IMPORTED_TARGET lua5.4 lua-5.4 lua54)
pkg_check_modules(PNG REQUIRED libpng) # its header: the library is opened when a picture is shown or read
pkg_check_modules(TURBOJPEG REQUIRED libturbojpeg) # its header too
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)

find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
file(STRINGS ${DNNL_INCLUDE}/oneapi/dnnl/dnnl_version.h DNNL_MAJOR REGEX "define DNNL_VERSION_MAJOR")
string(REGEX MATCH "[0-9]+" DNNL_MAJOR "${DNNL_MAJOR}")
if(NOT DNNL_MAJOR MATCHES "^[23]$")
    message(FATAL_ERROR "Tide needs oneDNN 2 or 3; ${DNNL_INCLUDE} has version '${DNNL_MAJOR}'")
endif()
add_library(dnnl_external INTERFACE)
target_include_directories(dnnl_external SYSTEM INTERFACE ${DNNL_INCLUDE})
target_link_libraries(dnnl_external INTERFACE ${DNNL_LIBRARY})

# The interpreter is linked statically and its symbols exported, as lua5.4 itself does, so that C
# modules find them and calls into it cost no indirection.
find_library(LUA_STATIC NAMES liblua5.4.a liblua-5.4.a liblua54.a liblua.a NAMES_PER_DIR HINTS ${LUA_LIBRARY_DIRS} REQUIRED)
add_library(lua_static INTERFACE)
target_include_directories(lua_static SYSTEM INTERFACE ${LUA_INCLUDE_DIRS})
target_link_libraries(lua_static INTERFACE ${LUA_STATIC} m ${CMAKE_DL_LIBS})
