# shellcheck shell=bash
# Shared by scripts/demo, scripts/test and .ci/run. Source it; it defines functions and $root.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
logs=$root/build/logs
group=            # process group of the current command
declare -A lanes  # process groups of commands that run beside it, by name
ticker=           # process that prints a line periodically

note() { printf '[%4d s] %s\n' "$SECONDS" "$*" >&2; }
fail() { printf 'crema: %s\n' "$*" >&2; exit 1; }

# However the script ends, no process that it started may stay behind.
stop_children() {
    [ -z "$ticker" ] || kill "$ticker" 2>/dev/null || true
    ticker=
    local each try all=()
    for each in $group "${lanes[@]}"; do all+=("-$each"); done
    [ "${#all[@]}" -gt 0 ] || return 0
    kill -TERM -- "${all[@]}" 2>/dev/null || true
    for ((try = 0; try < 100; try++)); do
        kill -0 -- "${all[@]}" 2>/dev/null || break
        read -rt 0.1 _ <> <(:) || true
    done
    kill -KILL -- "${all[@]}" 2>/dev/null || true
    wait "${all[@]#-}" 2>/dev/null || true
    group=
    lanes=()
}
trap stop_children EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# Starts a command in its own process group ($!), so that a signal to the script reaches all of it. A plain
# foreground command would delay the traps until it ends; a plain "&" would make it ignore SIGINT.
start_group() {
    set -m
    "$@" </dev/null &
    set +m
}

run_group() {
    local status=0
    start_group "$@"
    group=$!
    wait "$group" || status=$?
    group=
    return "$status"
}

# Prints "TEXT ..." every 15 s. The builtin read is the timer: no sleep process is left when it is killed.
start_ticker() {
    ( trap - EXIT
      while :; do
          read -rt 15 _ <> <(:) || true
          note "$1 ..."
      done ) &
    ticker=$!
}

stop_ticker() {
    kill "$ticker" 2>/dev/null || true
    wait "$ticker" 2>/dev/null || true
    ticker=
}

# step NAME TEXT COMMAND...: runs quietly with a log; shows the end of the log when it fails.
step() {
    local name=$1 text=$2 log=$logs/$1.log status=0
    shift 2
    mkdir -p "$logs"
    note "$text"
    start_ticker "$text"
    run_group "$@" >"$log" 2>&1 || status=$?
    stop_ticker
    [ "$status" -eq 0 ] && return 0
    tail -n 25 "$log" >&2
    fail "$text: failed with status $status (log above: build/logs/$name.log)"
}

# show NAME TEXT COMMAND...: like step, but shows the output as it is printed; returns the command's status.
show() {
    local name=$1 text=$2
    shift 2
    mkdir -p "$logs"
    note "$text"
    run_group with_tee "$logs/$name.log" "$@"
}

# begin_lane NAME TEXT COMMAND...: runs beside what follows, with a log.
begin_lane() {
    local name=$1 text=$2
    shift 2
    mkdir -p "$logs"
    note "$text, beside what follows"
    start_group "$@" >"$logs/$name.log" 2>&1
    lanes[$name]=$!
}

# end_lane NAME: waits for it and shows its output; returns its status.
end_lane() {
    local status=0
    wait "${lanes[$1]}" || status=$?
    unset "lanes[$1]"
    cat "$logs/$1.log"
    return "$status"
}

with_tee() {
    local log=$1
    shift
    "$@" 2>&1 | tee "$log"
    return "${PIPESTATUS[0]}"
}

# tell_room GB TEXT: prints a line if the disk is too full for TEXT: without space, failures are hard to interpret.
tell_room() {
    local free
    free=$(df -Pk "$root" | awk 'NR == 2 { print int($4 / 1048576) }')
    [ "$free" -ge "$1" ] || note "only $free GB are free in '$root', and $2 takes about $1: free some if it fails"
}

# The packages for the given purposes (test, ci) that are not installed.
missing_packages() {
    local purposes=" $* " name only
    while read -r name only; do
        case $name in ''|'#'*) continue ;; esac
        [ -z "$only" ] || [ "${purposes#* "$only" }" != "$purposes" ] || continue
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] ||
            printf '%s\n' "$name"
    done <"$root/scripts/packages.txt"
}

apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    "$@" apt-get update && "$@" apt-get install -y --no-install-recommends "${missing[@]}"
}

install_packages() {
    command -v dpkg-query >/dev/null || fail "this needs Debian or Ubuntu (no dpkg-query found)"
    local missing=() sudo=()
    mapfile -t missing < <(missing_packages "$@")
    [ "${#missing[@]}" -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        # -n first: prompt for a password only if a user can type one.
        if sudo -n true 2>/dev/null; then
            sudo=(sudo -n)
        elif [ ! -t 0 ] || ! sudo -v; then
            printf 'crema: packages are missing; run this line as root, then start again:\n' >&2
            printf '    apt-get install -y %s\n' "${missing[*]}" >&2
            exit 1
        fi
        sudo=("${sudo[@]:-sudo}")
    fi
    step apt "installing ${missing[*]}" apt_install "${sudo[@]}"
}

# The first Python that the pinned packages support and that can create a venv.
find_python() {
    local name
    for name in python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
        "$name" -c 'import sys, venv, ensurepip
sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || continue
        command -v "$name"
        return 0
    done
    return 1
}

make_venv() {
    local python=$venv/bin/python try
    rm -rf "$venv"
    "$1" -m venv "$venv" || return 1
    "$python" -m pip install --disable-pip-version-check --no-input --progress-bar off "$(grep '^uv==' "$root/requirements.txt")" ||
        echo "there is no uv: pip installs, which takes longer"
    for try in 1 2 3; do
        if "$python" "$root/scripts/pip_install.py" "$python" -r "$root/requirements.txt"; then
            # once, and not in all processes of the first cluster at the same time
            "$python" -c "import coffea.nanoevents, coffea.processor, dask.dataframe, distributed, hist, pytest"
            return
        fi
        echo "pip failed (try $try of 3)"
    done
    return 1
}

# .venv is kept until requirements.txt changes or the directory was moved.
ensure_venv() {
    local stamp=$venv/crema-stamp want python
    want="$(sha256sum <"$root/requirements.txt") $venv"
    if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
        return 0
    fi
    python=$(find_python) || fail "no Python 3.11, 3.12 or 3.13 with venv found (package python3-venv)"
    step pip "making .venv with $("$python" -V)" make_venv "$python"
    printf '%s\n' "$want" >"$stamp"
}

build() { build_all all; }
build_all() { step make "building" make -C "$root" -j "$(nproc)" "$@"; }

make_data() { run_group "$venv/bin/python" "$root/scripts/make_data.py"; }
