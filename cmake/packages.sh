# packages.sh: what Tide needs from a Debian or Ubuntu system, and how to get it. Sourced by repl/run,
# tests/run and .ci/run with `root` set; says everything on stderr.

# One package a word; "a|b" is met by either, and the first is what gets installed.
tide_build_packages="gcc g++ libc6-dev cmake ninja-build pkgconf|pkg-config liblua5.4-dev
    libdnnl-dev libopenblas-openmp-dev libsleef-dev libzmq3-dev libjansson-dev
    libsodium-dev zlib1g-dev libpng-dev libturbojpeg0-dev"
tide_pack_packages="python3 patchelf binutils dpkg-dev file git libopenmpi-dev libmpich-dev"
tide_test_packages="$tide_pack_packages lua5.4 luajit python3-jupyter-client python3-nbclient python3-nbconvert
    python3-jupyter-kernel-test python3-numpy time dataset-fashion-mnist libonnx-testdata espeak-ng
    libllvm19|libllvm18|libllvm15 openmpi-bin mpich"
tide_cross_packages="cmake ninja-build pkgconf ccache gcc-aarch64-linux-gnu g++-aarch64-linux-gnu
    libc6-dev-arm64-cross qemu-user-static liblua5.4-dev:arm64 libdnnl-dev:arm64 libopenblas-openmp-dev:arm64
    libsleef-dev:arm64 libzmq3-dev:arm64 libjansson-dev:arm64 libsodium-dev:arm64 zlib1g-dev:arm64 libpng-dev:arm64
    libturbojpeg0-dev:arm64"
tide_ci_packages="ccache git clang libclang-rt-14-dev|libclang-rt-dev clang-format debootstrap"

# How the tests are built, a warning being an error: with kernels for all instruction sets; for a sanitizer, which takes
# minutes a file to compile into loops and finds the same in each set, with those that this machine runs.
tide_test_options() { # preset
    local isa=all
    case $1 in asan | tsan | fuzz) isa=native ;; esac
    printf '%s\n' "-DTIDE_ISA=$isa" -DTIDE_WERROR=ON -DTIDE_TESTS=ON
}

# What the packages are, for a person on another system.
tide_needs="a C and C++ compiler (gcc or clang), CMake 3.22, Ninja, pkg-config, and the development files of\
 Lua 5.4, oneDNN 2 or 3, OpenBLAS, SLEEF, ZeroMQ, Jansson, libsodium, libpng, libturbojpeg and zlib"

tide_say() {
    printf 'tide: %s\n' "$*" >&2
}

# tide_missing PACKAGES...: prints those that are not installed.
tide_missing() {
    local installed word one found
    # One query for all; it fails when it doesn't know a name, which is an answer too.
    installed=" $(dpkg-query -W -f='${db:Status-Status}:${Package}\n' ${*//|/ } 2>/dev/null |
        sed -n 's/^installed://p' | tr '\n' ' ') "
    for word in "$@"; do
        found=
        for one in ${word//|/ }; do
            [[ $installed == *" $one "* ]] && found=1
        done
        [[ $found ]] || printf '%s\n' "${word%%|*}"
    done
}

# How this user becomes root: nothing to put before a command, "sudo -n", "sudo" where a person can be
# asked, or failure.
tide_as_root() {
    if [[ $(id -u) == 0 ]]; then
        return 0
    elif ! command -v sudo >/dev/null; then
        return 1
    elif sudo -n true 2>/dev/null; then
        echo sudo -n
    elif [[ -t 0 && -t 2 ]]; then
        echo sudo
    else
        return 1
    fi
}

# tide_install PACKAGES...: installs those of them that are missing. Where that is impossible, one line
# names them, and the script ends with 1.
tide_install() {
    local missing sudo why log="$root/build/packages.log"
    command -v apt-get >/dev/null && command -v dpkg-query >/dev/null || return 0
    missing=$(tide_missing "$@")
    [[ $missing ]] || return 0
    missing=${missing//$'\n'/ }
    if ! sudo=$(tide_as_root); then
        tide_say "missing packages, and no root or sudo to install them with: $missing"
        exit 1
    fi
    mkdir -p "$root/build"
    tide_say "installing $missing (log: build/packages.log)"
    local apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300"
    # An update may fail for a source that isn't ours; whether the packages can be had shows next.
    $apt update </dev/null >"$log" 2>&1
    if ! $apt install --no-install-recommends $missing </dev/null >>"$log" 2>&1; then
        why=$(sed -n 's/^E: *//p' "$log" | head -n 1)
        tide_say "apt-get could not install $missing: ${why:-$(tail -n 1 "$log")} (log: build/packages.log)"
        exit 1
    fi
}

# tide_weigh STEP: sets `weight` to about how long a step of a build takes, told by its command or by what ninja
# says of it, in tenths of a second of one processor (gcc 12, a Zen 3); only the proportions count. Where `quick` is
# set, the baseline is compiled as TIDE_ISA=native and quick have it (isa.cmake).
tide_weigh() {
    local set=dear
    [[ ! ${quick-} || $1 != *isa_baseline* ]] || set=quick
    case $set-$1 in
    *" -shared "* | *Linking*) weight=1 ;;
    dear-*isa*fused_kernels*) weight=380 ;;
    dear-*isa*pointwise_kernels* | dear-*isa*spatial_kernels*) weight=280 ;;
    dear-*isa*reduce_kernels*) weight=190 ;;
    dear-*isa*product_kernels* | dear-*isa*softmax_kernels*) weight=80 ;;
    dear-*isa*scan_kernels* | dear-*isa*grid_kernels* | dear-*isa*norm_kernels* | dear-*isa*convert_kernels*) weight=35 ;;
    quick-*pointwise_kernels*) weight=95 ;;
    quick-*fused_kernels* | quick-*spatial_kernels* | quick-*reduce_kernels*) weight=50 ;;
    *isa*_kernels*) weight=11 ;;
    *"Building CUDA"* | */nvcc*) weight=150 ;;
    *.cu.o*) weight=40 ;;
    *engine_objects*/cpu/*) weight=5 ;;
    *engine_objects*/ops/*) weight=3 ;;
    *"Building C"* | *" -c "*) weight=2 ;;
    *) weight=1 ;;
    esac
}

# tide_at_work: sets `weight` to about what is done of steps that have begun and not ended: half of the heaviest of
# `counts` (how many of each weight have not ended), but not more than `able`.
tide_at_work() {
    local jobs=$((processors + 2)) weights=("${!counts[@]}") k n # as many as ninja runs at once
    weight=0
    for ((k = ${#weights[@]} - 1; k >= 0 && jobs > 0; k--)); do
        n=${counts[weights[k]]}
        ((n <= jobs)) || n=$jobs
        weight=$((weight + n * weights[k] / 2)) jobs=$((jobs - n))
    done
    ((weight <= able)) || weight=$((able > 0 ? able : 0))
}

# tide_clock: sets `now` to the seconds that this shell has run.
tide_clock() {
    now=$SECONDS
}

# tide_progress LOG [WEIGHT STEPS]: copies ninja's lines into the log and says how far it is and how long it will take:
# on a terminal on a line that changes, elsewhere every half minute. WEIGHT is the sum of the weights of the
# STEPS that there are to a whole build; where ninja has fewer to do all count the same. `counts` says how many steps
# there are of each weight: what is at work and hasn't ended counts in part then.
tide_progress() {
    local processors=$(nproc 2>/dev/null || echo 1) done able line log=$1 sum=${2:-0} whole=${3:-0} weight steps all left now past=0 began said shown=
    tide_clock
    began=$now said=$now
    while IFS= read -r line; do
        printf '%s\n' "$line"
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        steps=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
        tide_clock
        ((10 * all >= 9 * whole)) || sum=0
        if ((sum > 0)); then
            tide_weigh "$line"
            past=$((past + weight))
            ((${counts[weight]-0} == 0)) || counts[weight]=$((counts[weight] - 1))
        else
            past=$steps
        fi
        [[ -t 2 ]] || ((now - said >= 30)) || continue
        left=
        if ((now - began >= 3 && steps < all && (sum > 0 || 10 * steps >= all))); then # steps of unknown weight tell late
            weight=0 able=$((10 * processors * (now - began) - past))
            ((sum == 0)) || tide_at_work
            left=$((sum > 0 ? sum : all)) done=$((past + weight))
            left=$(((now - began) * (left > done ? left - done : 1) / done))
            ((left < 90)) && left=", about $left s left" || left=", about $(((left + 30) / 60)) min left"
        fi
        if [[ -t 2 ]]; then
            printf '\r\033[Ktide: %d of %d%s' "$steps" "$all" "$left" >&2
            shown=1
        else
            tide_say "$steps of $all$left"
        fi
        said=$now
    done >"$log"
    [[ ! $shown ]] || printf '\r\033[K' >&2
}

# tide_configured DIR OPTION...: whether the build folder was configured with these options (-DNAME=VALUE).
tide_configured() {
    local dir=$1 option
    [[ -f $dir/build.ninja ]] || return 1
    for option in "${@:2}"; do
        option=${option#-D}
        grep -q "^${option%%=*}:[A-Z]*=${option#*=}$" "$dir/CMakeCache.txt" || return 1
    done
}

# tide_build PRESET [-DNAME=VALUE...] [TARGETS...]: configures where that hasn't been done or was done with other
# options, and builds. Two builds of one folder would write over each other's objects: the second waits.
tide_build() {
    mkdir -p "$root/build" || return 1
    if ! command -v flock >/dev/null; then
        tide_build_alone "$@"
        return
    fi
    (
        if ! flock -n 9; then
            tide_say "build/$1 is being built already: waiting for it"
            flock 9
        fi
        tide_build_alone "$@"
    ) 9>"$root/build/$1.lock"
}

tide_build_alone() {
    local preset=$1 dir="$root/build/$1" log="$root/build/$1.log" options=() quick= counts=() weight sum=0 steps=0 step
    shift
    while [[ ${1-} == -D* ]]; do
        options+=("$1")
        shift
    done
    # A build folder that was copied from elsewhere knows the wrong sources.
    if [[ -f $dir/CMakeCache.txt ]] &&
        ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$dir/CMakeCache.txt"; then
        rm -rf "$dir"
    fi
    if ! command -v cmake >/dev/null || ! command -v ninja >/dev/null; then
        tide_say "what Tide needs: $tide_needs"
        return 1
    fi
    if ! tide_configured "$dir" "${options[@]}"; then
        tide_say "configuring build/$preset"
        if ! (cd "$root" && cmake --preset "$preset" "${options[@]}") >"$log" 2>&1 </dev/null; then
            grep -q 'CMake Error' "$log" && sed -n '/CMake Error/,$p' "$log" >&2 || cat "$log" >&2
            command -v apt-get >/dev/null || tide_say "what Tide needs: $tide_needs"
            tide_say "configuring failed (log: build/$preset.log)"
            return 1
        fi
    fi
    tide_say "building build/$preset"
    ! grep -qs '^TIDE_ISA:[A-Z]*=\(native\|quick\)$' "$dir/CMakeCache.txt" || quick=1
    while IFS= read -r step; do
        tide_weigh "$step"
        sum=$((sum + weight)) steps=$((steps + 1)) counts[weight]=$((${counts[weight]-0} + 1))
    done < <(ninja -C "$dir" -t commands "$@" 2>/dev/null)
    cmake --build "$dir" ${@:+--target "$@"} 2>&1 </dev/null | tide_progress "$log" "$sum" "$steps"
    if [[ ${PIPESTATUS[0]} != 0 ]]; then
        # The first error is what counts; ninja prints successes as well.
        grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | head -n 60 >&2
        tide_say "building failed (log: build/$preset.log)"
        return 1
    fi
}
