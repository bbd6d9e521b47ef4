# Completion of tide, tide-kernel and tide-run for bash.
_tide() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
    --profile | -f) COMPREPLY=($(compgen -f -- "$word")) && return ;;
    --prefix) COMPREPLY=($(compgen -d -- "$word")) && return ;;
    --device) COMPREPLY=($(compgen -W "cpu cuda" -- "$word")) && return ;;
    --mpi) COMPREPLY=($(compgen -W "openmpi mpich" -- "$word")) && return ;;
    -e | -l | -n | --profile-events | --rehearse | --patience) return ;;
    esac
    if [[ ${1##*/} == tide-kernel ]]; then
        COMPREPLY=($(compgen -W "-f --f --install --uninstall --user --prefix --sys-prefix --version --help" -- "$word"))
    elif [[ ${1##*/} == tide-run && $word == -* ]]; then
        COMPREPLY=($(compgen -W "-n --mpi --allow-root --rehearse --patience --verbose --help" -- "$word"))
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "-e -l -i - -- --no-init --profile --profile-events --bottleneck --advise --json --info --doctor --ops --device
            --reference --peak --version --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -X '!*.lua' -- "$word") $(compgen -d -- "$word"))
    fi
}
complete -o filenames -F _tide tide tide-kernel tide-run
