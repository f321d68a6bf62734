#!/bin/sh
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
#   nccl.sh serve RAILS TESTS LAUNCHER INDEX HOSTS GPUS PATIENCE   run all collectives of TESTS with the other hosts
#   nccl.sh rank SETTINGS... -- PROGRAM OPTIONS                    one process of a collective, with what is local to its host
#
# Runs in each pod of a unit. The processes start without ssh: hydra, the launcher of MPICH, prints the command of the proxy
# of each host (-launcher manual), and each pod runs its own. The pod with INDEX 0 is also the launcher. A line of TESTS is
# "NUMBER SECONDS PROGRAM SETTINGS... -- OPTIONS". LAUNCHER is the name of the first pod; PATIENCE: seconds until all run.
# Nothing is judged here: raw output and the lines of NCCL's log that show its transport are printed between markers.
set -u

FIRST_PORT=${GPUFABRIC_NCCL_PORT:-18400}
LARGEST_OUTPUT=65536
LARGEST_LOG=524288
WORK=${TMPDIR:-/tmp}
here=$(dirname "$0")

say() { printf '%s\n' "$*"; }

die() {
    say "$*"
    exit 3
}

# cut FILE BYTES: the file, with a marker where it is longer.
cut_at() {
    head -c "$2" "$1"
    [ "$(wc -c <"$1")" -le "$2" ] || printf '\n=== gpufabric nccl cut\n'
}

# word NAME LINE: the value of NAME=VALUE in a line.
word() { say "$2" | sed -n "s/^.* $1=\([^ ]*\).*$/\1/p"; }

# What depends on this host: the devices of its rails in their order, their GID index, and the interface of the cluster's network.
environment() {
    described=$(sh "$here/tester.sh" describe "$1") || die "the rails cannot be described"
    failed=$(say "$described" | grep '^rail .* error=' | head -n 1)
    [ -z "$failed" ] || die "$failed"
    list='' gids='' roce=''
    while read -r line; do
        case $line in "rail "*) ;; *) continue ;; esac
        list="$list,$(word device "$line"):$(word port "$line")"
        case $line in *'gid_type="RoCE'*) roce=1 ;; esac
        gids="$gids $(word gid "$line")"
    done <<EOT
$described
EOT
    [ -n "$list" ] || die "the tester described no rail"
    say "NCCL_IB_HCA==${list#,}"
    if [ -n "$roce" ]; then
        # One index holds for all devices: where they differ, NCCL finds the entry of each.
        if [ "$(say "$gids" | tr ' ' '\n' | grep . | sort -u | wc -l)" -eq 1 ]; then
            say "NCCL_IB_GID_INDEX=${gids##* }"
        else
            say "NCCL_IB_ROCE_VERSION_NUM=2"
            say "NCCL_IB_ADDR_FAMILY=AF_INET"
        fi
    fi
    interface=$(ip -o route show default 2>/dev/null | sed -n 's/^.* dev \([^ ]*\).*$/\1/p' | head -n 1)
    [ -n "$interface" ] || interface=$(ip -o -6 route show default 2>/dev/null | sed -n 's/^.* dev \([^ ]*\).*$/\1/p' | head -n 1)
    [ -n "$interface" ] || die "there is no default route, so the interface of the cluster's network is not known"
    say "NCCL_SOCKET_IFNAME==$interface"
    address=$(ip -o addr show dev "$interface" scope global 2>/dev/null | awk 'NR == 1 { sub("/.*", "", $4); print $4 }')
    [ -n "$address" ] || die "interface $interface has no address"
    say "MPICH_INTERFACE_HOSTNAME=$address"
}

# The command of hydra for a collective; the same in each pod.
hydra() {
    mpiexec.hydra -launcher manual -rmk user -hosts "$names" -ppn "$gpus" -n $((hosts * gpus)) -localhost "$launcher" \
        -disable-hostname-propagation sh "$0" rank "$@" </dev/null
}

# Runs the command of the proxy of this host and prints each other line. Hydra prints its commands before it accepts
# connections, so what looks like one later is text of a process on any host.
launched() {
    started=''
    while IFS= read -r line && [ "$line" != HYDRA_LAUNCH_END ]; do
        case $line in
        "HYDRA_LAUNCH: "*"--proxy-id 0" | "HYDRA_LAUNCH: "*"--proxy-id 0 ")
            [ -z "$started" ] || continue
            started=1
            # shellcheck disable=SC2086 # the words of a command that hydra printed here
            ${line#HYDRA_LAUNCH: } </dev/null &
            ;;
        HYDRA_LAUNCH*) ;;
        *) say "$line" ;;
        esac
    done
    cat
}

# The launcher: it runs the proxy of its own host too.
launch() {
    MPIEXEC_PORT_RANGE="$port:$port"
    export MPIEXEC_PORT_RANGE
    {
        hydra "$@" 2>&1
        say $? >"$WORK/rc"
    } | launched
    return "$(cat "$WORK/rc")"
}

# Any other pod: hydra here prints the commands, of which this host's runs with the port of the launcher.
join() {
    command=$( (timeout -s KILL 3 sh "$0" commands "$@"; :) 2>/dev/null | sed -n "/^HYDRA_LAUNCH_END/q; s/^HYDRA_LAUNCH: //p" |
        grep -m 1 -e "--proxy-id $index *\$" | sed "s/--control-port [^ ]*/--control-port $launcher:$port/")
    [ -n "$command" ] || die "hydra printed no command for host $index"
    # The launcher may not listen yet.
    until [ "$(date +%s)" -ge "$end" ]; do
        # shellcheck disable=SC2086 # the words of a command
        $command </dev/null >"$WORK/joined" 2>&1 && return 0
        code=$?
        grep -q 'connect\|resolve\|gethostby' "$WORK/joined" || {
            cat "$WORK/joined"
            return $code
        }
        sleep 1
    done
    say "the launcher $launcher could not be reached"
    return 4
}

serve() {
    rails=$1 tests=$2 launcher=$3 index=$4 hosts=$5 gpus=$6 patience=$7
    names='' number=0
    while [ "$number" -lt "$hosts" ]; do
        names="$names,w$number" number=$((number + 1))
    done
    names=${names#,}
    export names hosts gpus launcher
    say "=== gpufabric nccl environment"
    (environment "$rails") >"$WORK/environment" || {
        cat "$WORK/environment"
        exit 3
    }
    cat "$WORK/environment"
    say "=== gpufabric nccl collectives"
    while read -r number seconds program rest; do
        run
        patience=0
    done <"$tests"
    say "=== gpufabric nccl done"
}

# What the logs of all processes tell of the transport. Connections are counted, since their number grows with each host.
summary() {
    cat "$WORK"/nccl.log.* 2>/dev/null | grep -aoE ' via (NET/|P2P|SHM).*' | sed 's/([0-9]*)//' | sort | uniq -c
    cat "$WORK"/nccl.log.* 2>/dev/null | grep -aE 'NET/.*: Using |Made virtual device|Using network|NCCL version|DMA-BUF'
    cat "$WORK"/nccl.log.* 2>/dev/null | grep -a 'NCCL WARN' | head -n 50
}

run() {
    port=$((FIRST_PORT + number))
    end=$(($(date +%s) + seconds + patience))
    export port end index
    rm -f "$WORK"/nccl.log.*
    step="join"
    [ "$index" -ne 0 ] || step="launch"
    # shellcheck disable=SC2086 # settings and options are words
    timeout -k 5 $((seconds + patience)) sh "$0" "$step" ${rest%%-- *}-- "$program" ${rest#*-- } >"$WORK/output" 2>&1 </dev/null
    rc=$?
    say "=== gpufabric nccl begin $number"
    cut_at "$WORK/output" "$LARGEST_OUTPUT"
    say "=== gpufabric nccl log $number"
    summary >"$WORK/log"
    cut_at "$WORK/log" "$LARGEST_LOG"
    say "=== gpufabric nccl end $number rc=$rc"
}

rank() {
    while [ "$1" != -- ]; do
        export "${1?}"
        shift
    done
    shift
    case $1 in all_reduce_perf | alltoall_perf) ;; *) die "$1 is not a program of nccl-tests" ;; esac
    while IFS= read -r line; do
        export "${line?}"
    done <"$WORK/environment"
    NCCL_DEBUG_FILE="$WORK/nccl.log.%p"
    export NCCL_DEBUG_FILE
    exec "$@"
}

action=${1:-}
[ $# -eq 0 ] || shift
case $action in
serve) [ $# -eq 7 ] || die "usage: nccl.sh serve RAILS TESTS LAUNCHER INDEX HOSTS GPUS PATIENCE" && serve "$@" ;;
launch | join | rank) "$action" "$@" ;;
commands) hydra "$@" ;;
*) die "usage: nccl.sh serve RAILS TESTS LAUNCHER INDEX HOSTS GPUS PATIENCE | rank SETTINGS... -- PROGRAM OPTIONS" ;;
esac
