# Toolchain of a cross build for 64-bit Arm on Debian (gcc-aarch64-linux-gnu, and the libraries' packages as NAME:arm64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
find_program(TIDE_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(TIDE_QEMU) # what runs the tests where the system doesn't start such programs by itself
    set(CMAKE_CROSSCOMPILING_EMULATOR ${TIDE_QEMU})
endif()
