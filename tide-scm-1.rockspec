-- `luarocks make` in a checkout builds Tide for the Lua 5.4 of this machine: `require "tide"`. The libraries that Tide
-- stands on are the system's (README.md names them), kernels are compiled for the machine at hand.
rockspec_format = "3.0"
package = "tide"
version = "scm-1"
source = {url = "."}
description = {
    summary = "A laboratory for tensors: tensors, autograd, profiler",
    license = "MIT",
}
dependencies = {"lua >= 5.4, < 5.5"}
supported_platforms = {"linux"}
build = {
    type = "command",
    build_command = "cmake -S . -B build/rock -G Ninja -DCMAKE_BUILD_TYPE=Release -DTIDE_TESTS=OFF -DTIDE_CUDA=OFF"
        .. " && cmake --build build/rock --target tide_module",
    install_command = "cmake --install build/rock --component rock --prefix \"$(LIBDIR)\"",
}
