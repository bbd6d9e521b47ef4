# Completion of tide and tide-kernel for bash.
_tide() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    case $before in
    --profile | -f) COMPREPLY=($(compgen -f -- "$word")) && return ;;
    --prefix) COMPREPLY=($(compgen -d -- "$word")) && return ;;
    --device) COMPREPLY=($(compgen -W "cpu cuda" -- "$word")) && return ;;
    -e | -l | --profile-events) return ;;
    esac
    if [[ ${1##*/} == tide-kernel ]]; then
        COMPREPLY=($(compgen -W "-f --f --install --uninstall --user --prefix --sys-prefix --version --help" -- "$word"))
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "-e -l -i - -- --no-init --profile --profile-events --bottleneck --advise --json --info --doctor --ops --device
            --reference --peak --version --help" -- "$word"))
    else
        COMPREPLY=($(compgen -f -X '!*.lua' -- "$word") $(compgen -d -- "$word"))
    fi
}
complete -o filenames -F _tide tide tide-kernel
