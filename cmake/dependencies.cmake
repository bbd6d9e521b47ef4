# The libraries Tide takes from the system, each as an imported target.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(SLEEF REQUIRED IMPORTED_TARGET sleef)
pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
pkg_check_modules(LUA REQUIRED IMPORTED_TARGET lua5.4)
pkg_check_modules(PNG REQUIRED libpng) # its header: the library is opened when a picture is shown
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)

find_path(DNNL_INCLUDE oneapi/dnnl/dnnl.h REQUIRED)
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(dnnl_external INTERFACE)
target_include_directories(dnnl_external SYSTEM INTERFACE ${DNNL_INCLUDE})
target_link_libraries(dnnl_external INTERFACE ${DNNL_LIBRARY})

# The interpreter is linked statically and its symbols exported, as lua5.4 itself does, so that C
# modules find them and calls into it cost no indirection.
find_library(LUA_STATIC NAMES liblua5.4.a REQUIRED)
add_library(lua_static INTERFACE)
target_include_directories(lua_static SYSTEM INTERFACE ${LUA_INCLUDE_DIRS})
target_link_libraries(lua_static INTERFACE ${LUA_STATIC} m ${CMAKE_DL_LIBS})

# Line editing: GNU readline (GPL: so is the binary then) or else libedit (BSD).
pkg_check_modules(READLINE IMPORTED_TARGET readline)
if(READLINE_FOUND)
    set(TIDE_EDIT_TARGET PkgConfig::READLINE)
    set(TIDE_EDIT_NAME "GNU readline ${READLINE_VERSION}")
else()
    pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
    set(TIDE_EDIT_TARGET PkgConfig::EDIT)
    set(TIDE_EDIT_NAME "libedit ${EDIT_VERSION}")
endif()
