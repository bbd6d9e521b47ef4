#compdef tide tide-kernel tide-run
# Completion of tide, tide-kernel and tide-run for zsh.
if [[ $service == tide-kernel ]]; then
    _arguments \
        '-f[run the kernel of a connection file]:file:_files' \
        '--f=[run the kernel of a connection file]:file:_files' \
        '--install[make Jupyter see the kernel]' \
        '--uninstall[undo that]' \
        '--user[for you alone]' \
        '--prefix[below a folder]:folder:_files -/' \
        '--sys-prefix[in the environment in use]' \
        '--version[print the version]' \
        '--help[print a summary]'
elif [[ $service == tide-run ]]; then
    _arguments \
        '-n[how many processes]:number:' \
        '--mpi[of which MPI]:mpi:(openmpi mpich)' \
        '--allow-root[let root start them]' \
        '--rehearse[so many ranks here, without MPI, each of which is seen]:number:' \
        '--patience[seconds in which something must happen]:number:' \
        '--verbose[say what is done]' \
        '--help[print a summary]' \
        '1:script:_files -g "*.lua"' \
        '*:argument:_files'
else
    _arguments \
        '*-e[run code and show its value]:code:' \
        '*-l[require a module into a global]:name:' \
        '-i[open the prompt afterwards]' \
        '--no-init[without init.lua]' \
        '--profile[record a Chrome trace]:file:_files' \
        '--profile-events[how many events a trace keeps]:number:' \
        '--bottleneck[say what to change first]' \
        '--advise[say line by line what could be better]' \
        '--json[advice or findings as JSON]' \
        '--info[what this build finds on this machine]' \
        '--doctor[what is wrong with this machine, or with files]' \
        '--ops[all operators]' \
        '--device[where operators run]:device:(cpu cuda)' \
        '--reference[everything as a page of HTML]' \
        '--peak[measure what this machine can do]' \
        '--version[print the version]' \
        '--help[print a summary]' \
        '1:script:_files -g "*.lua"' \
        '*:argument:_files'
fi
