#!/bin/sh
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The tester: plays perftest on bare hosts and in pods alike. Needs a POSIX sh, perftest, timeout and sysfs;
# uses taskset and stdbuf when they are there. It judges nothing: raw output goes out between markers.
#
#   tester.sh describe RAILS                what each rail is here
#   tester.sh run RAILS [LOG [START_IN]]    play one batch from standard input, START_IN seconds from now
#   tester.sh serve RAILS MAILBOX IDLE      describe, then play batches from MAILBOX until told that it was the last
#   tester.sh deliver MAILBOX N             put the batch on standard input into the mailbox as number N
#   tester.sh finish MAILBOX                there will be no more batches
#
# RAILS has lines "rail NAME NETDEV [ADDRESS]"; ADDRESS "-" or none: the netdev's own is found.
# A batch: "BATCH n start_in slot", lines "round rail role peer port test args...", "END count".
# Times in here are hundredths of a second of /proc/uptime, which never jumps.

SYS=${GPUFABRIC_SYS:-/sys}
PROC=${GPUFABRIC_PROC:-/proc}
SLEEP=${GPUFABRIC_SLEEP:-sleep}
work=

say() { printf '%s\n' "$*"; }

die() {
    say "tester.sh: $*" >&2
    exit 2
}

# --- clock ------------------------------------------------------------------------------------------------------

clock() {
    read -r up _ <"$PROC/uptime"
    # 100 is put before the fraction so that 05 is not taken for an octal number.
    now=$((${up%.*} * 100 + 1${up#*.} - 100))
}

# Sleeps of at most a second, so that a signal is answered soon.
wait_until() {
    clock
    while [ "$now" -lt "$1" ]; do
        if [ $(($1 - now)) -ge 100 ]; then
            "$SLEEP" 1
        else
            "$SLEEP" 0.1 2>/dev/null || "$SLEEP" 1
        fi
        clock
    done
}

# --- what a rail is here ----------------------------------------------------------------------------------------

# first FILE: its first line in $line, empty when it cannot be read (empty GID slots give an I/O error).
first() {
    line=
    [ -e "$1" ] && IFS= read -r line 2>/dev/null <"$1"
    return 0
}

# Little-endian hexadecimal of /proc/net/route (0100A8C0) to dotted (192.168.0.1).
dotted() {
    rest=${1#??}
    rest2=${rest#??}
    dots=$((0x${rest2#??})).$((0x${rest2%??})).$((0x${rest%????})).$((0x${1%??????}))
}

number_of() {
    IFS=. read -r a b c d <<END
$1
END
    number=$(((a << 24) + (b << 16) + (c << 8) + d))
}

# own_addresses NETDEV: the local addresses inside the netdev's connected networks, in $found.
# fib_trie tells which addresses are local, the routing table which networks hang on which netdev.
own_addresses() {
    found=
    last=
    while read -r bar word kind _; do
        if [ "$bar" = "|--" ]; then
            last=$word
        elif [ "$bar $word $kind" = "/32 host LOCAL" ]; then
            case " $found " in *" $last "*) ;; *) on_netdev "$last" "$1" && found="$found $last" ;; esac
        fi
    done <"$PROC/net/fib_trie"
}

on_netdev() {
    number_of "$1"
    own=$number
    while read -r dev dest gateway _ _ _ _ mask _; do
        if [ "$dev $gateway" != "$2 00000000" ] || [ "$mask" = 00000000 ]; then
            continue
        fi
        dotted "$mask"
        number_of "$dots"
        bits=$number
        dotted "$dest"
        number_of "$dots"
        [ $((own & bits)) -eq "$number" ] && return 0
    done <"$PROC/net/route"
    return 1
}

# The netdev of the default route, and its address in $found.
control_address() {
    found=
    while read -r dev dest _ _ _ _ _ mask _; do
        if [ "$dest$mask" = 0000000000000000 ]; then
            own_addresses "$dev"
            break
        fi
    done <"$PROC/net/route"
    found=${found# }
    found=${found%% *}
}

# find_roce NETDEV ADDRESS: device, port, gid of the RoCE v2 GID that is this address. The name of the netdev decides
# between several; another name still counts, since pods see names of other namespaces.
find_roce() {
    number_of "$2"
    want=$(printf '0000:0000:0000:0000:0000:ffff:%04x:%04x' $((number >> 16)) $((number & 65535)))
    device=
    for dir in "$SYS"/class/infiniband/*/ports/*/gids; do
        [ -d "$dir" ] || continue
        for file in "$dir"/*; do
            first "$file"
            [ "$line" = "$want" ] || continue
            index=${file##*/}
            first "${dir%/gids}/gid_attrs/types/$index"
            [ "$line" = "RoCE v2" ] || continue
            first "${dir%/gids}/gid_attrs/ndevs/$index"
            [ -z "$device" ] || [ "$line" = "$1" ] || continue
            of_path "${dir%/gids}"
            gid=$index
            [ "$line" = "$1" ] && return 0
        done
    done
    [ -n "$device" ]
}

# find_ib NETDEV: device and port of an IPoIB netdev; InfiniBand needs no other GID than 0.
find_ib() {
    for dir in "$SYS"/class/infiniband/*/device/net/"$1"; do
        [ -d "$dir" ] || continue
        first "$SYS/class/net/$1/dev_port"
        of_path "${dir%/device/net/*}/ports/$((${line:-0} + 1))"
        gid=0
        return 0
    done
    return 1
}

of_path() {
    port=${1##*/}
    device=${1%/ports/*}
    device=${device##*/}
}

# The RDMA MTU that goes over a netdev MTU on Ethernet; the kernel takes 96 bytes off for headers.
rdma_mtu() {
    mtu=
    for size in 4096 2048 1024 512 256; do
        if [ $((${1:-0} - 96)) -ge "$size" ]; then
            mtu=$size
            return
        fi
    done
}

# local_to NETDEV FILE: numa_node or local_cpulist of the RDMA device, or of its netdev for a software device.
local_to() {
    first "$SYS/class/infiniband/$device/device/$2"
    [ -n "$line" ] || first "$SYS/class/net/$1/device/$2"
}

# resolve NETDEV ADDRESS: device port gid gid_type address mtu rate numa cpus, or the reason in $error.
resolve() {
    error=
    device=
    address=
    gid_type="RoCE v2"
    no_link "$1" && return
    if find_ib "$1" && first "$SYS/class/infiniband/$device/ports/$port/link_layer" && [ "$line" = InfiniBand ]; then
        gid_type=IB
    fi
    addresses=$2
    if [ "${2:--}" = - ]; then
        own_addresses "$1"
        addresses=$found
    fi
    for address in $addresses; do
        if [ "$gid_type" = IB ] || find_roce "$1" "$address"; then
            details "$1"
            return
        fi
    done
    error="$1 has no IPv4 address"
    [ -z "$address" ] || error="no RDMA device has a RoCE v2 GID for $address of $1"
}

# The link first: without one, network managers take the address away too, which would only confuse.
no_link() {
    first "$SYS/class/net/$1/operstate"
    state=$line
    first "$SYS/class/net/$1/carrier"
    if [ ! -d "$SYS/class/net/$1" ]; then
        error="there is no network device $1"
    elif [ "$line" = 0 ]; then
        error="$1 has no link: cable, transceiver or switch port"
    elif [ -z "$line" ] && [ "$state" = down ]; then
        error="$1 is not up"
    fi
    [ -n "$error" ]
}

details() {
    first "$SYS/class/infiniband/$device/ports/$port/state"
    case $line in
    *ACTIVE*) ;;
    *) error="port $port of $device ($1) is ${line#*: }" ;;
    esac
    first "$SYS/class/infiniband/$device/ports/$port/rate"
    rate=$line
    first "$SYS/class/net/$1/mtu"
    rdma_mtu "$line"
    [ "$gid_type" = IB ] && mtu=
    local_to "$1" numa_node
    numa=$line
    local_to "$1" local_cpulist
    cpus=$line
}

describe() {
    say "=== gpufabric describe v1"
    count=0
    while read -r word name netdev given _; do
        [ "$word" = rail ] || continue
        count=$((count + 1))
        resolve "$netdev" "${given:--}"
        if [ -n "$error" ]; then
            say "rail $name error=\"$error\""
        else
            say "rail $name device=$device port=$port netdev=$netdev gid=$gid gid_type=\"$gid_type\"" \
                "address=$address mtu=${mtu:--} rate=\"$rate\" numa=${numa:--} cpus=${cpus:--}"
        fi
    done <"$1"
    control_address
    first "$SYS/devices/system/clocksource/clocksource0/current_clocksource"
    source=$line
    first "${GPUFABRIC_ETC:-/etc}/machine-id"
    # shellcheck disable=SC3045 # not in POSIX, but in dash, bash and busybox; otherwise "-"
    say "host memlock=$(ulimit -l 2>/dev/null || say -) perftest=$(perftest_version)" \
        "control=${found:--} clock=${source:--} machine_id=${line:--}"
    say "=== gpufabric described $count"
}

# The version, "?" when it does not say, "-" when perftest is not there. Asking for it exits with 1.
perftest_version() {
    if command -v ib_write_bw >/dev/null 2>&1; then
        version=$(ib_write_bw --version 2>/dev/null </dev/null)
        version=${version##*Version: }
        say "${version:-?}"
    else
        say -
    fi
}

# --- one test ---------------------------------------------------------------------------------------------------

# A listening socket on the port is seen in the tables; connecting to look would kill a waiting server.
port_in_use() {
    hex=$(printf '%04X' "$1")
    for table in "$PROC/net/tcp" "$PROC/net/tcp6"; do
        [ -r "$table" ] || continue
        while read -r _ local _ state _; do
            [ "${local##*:}" = "$hex" ] && [ "$state" = 0A ] && return 0
        done <"$table"
    done
    return 1
}

# The value after -D in the arguments: how long a run takes at least.
duration_of() {
    duration=0
    while [ $# -gt 1 ]; do
        [ "$1" = -D ] && duration=$2
        shift
    done
}

# attempt SECONDS COMMAND...: under timeout, whose process group is killed at the end whatever happened to it.
attempt() {
    # timeout takes 0 for "never".
    seconds=$(($1 > 0 ? $1 : 1))
    shift
    timeout -k 1 "$seconds" "$@" >"$out.stdout" 2>"$out.stderr" </dev/null &
    pid=$!
    say "$pid" >"$out.pid"
    wait "$pid"
    rc=$?
    kill -KILL "-$pid" 2>/dev/null
    return 0
}

# test_once BEGIN END ROLE PEER PORT TEST DEVICE IBPORT GID CPUS ARGS...: result in $rc and the files $out.*
test_once() {
    begin=$1 end=$2 role=$3 peer=$4 tcp=$5 tool=ib_$6 device=$7 ibport=$8 gid=$9
    shift 9
    cpus=$1
    shift
    duration_of "$@"
    set -- "$tool" -d "$device" -i "$ibport" -x "$gid" -p "$tcp" "$@"
    command -v stdbuf >/dev/null 2>&1 && set -- stdbuf -oL "$@"
    [ "$cpus" != - ] && taskset -c "$cpus" true >/dev/null 2>&1 && set -- taskset -c "$cpus" "$@"
    if ! command -v "$tool" >/dev/null 2>&1; then
        refuse "$tool is not installed"
    elif [ "$role" = server ] && port_in_use "$tcp"; then
        refuse "TCP port $tcp is in use by another program"
    elif [ "$role" = server ]; then
        clock
        attempt $(((end - now) / 100)) "$@"
    else
        # The server was started one second before; it is tried again as long as a whole run still fits.
        wait_until $((begin + 100))
        until_connected "$@" "$peer"
    fi
}

until_connected() {
    clock
    while :; do
        attempt $(((end - now) / 100)) "$@"
        clock
        [ $((end - now)) -gt $((duration * 100 + 200)) ] || return 0
        case $(cat "$out.stderr") in
        *"Couldn't connect"*) "$SLEEP" 1 ;;
        *) return 0 ;;
        esac
        clock
    done
}

refuse() {
    rc=125
    : >"$out.stderr"
    say "gpufabric: $*" >"$out.stdout"
}

# Header and row without the address lines, and the end of the errors: 2 KB at most.
excerpt() {
    while IFS= read -r line; do
        case $line in
        *" address: LID "* | *GID:* | ---* | *\*\*\** | *Waiting\ for\ client* | "") ;;
        *) say "$line" ;;
        esac
    done <"$out.stdout" | tail -c 1300
    tail -c 600 "$out.stderr"
    # An end of line, in case the last one was cut.
    say
}

# play_test BEGIN END ROUND RAIL ROLE PEER PORT TEST ARGS...: in the background; leaves its frame in a file.
play_test() {
    begin=$1 end=$2 round=$3 rail=$4 role=$5 peer=$6 tcp=$7 tool=$8
    shift 8
    out=$work/$round.$rail
    clock
    started=$now
    IFS= read -r known 2>/dev/null <"$work/rail.$rail" || known="error there is no rail $rail here"
    case $known in
    error*) refuse "${known#error }" ;;
    *)
        # shellcheck disable=SC2086 # five words: device port gid cpus
        test_once "$begin" "$end" "$role" "$peer" "$tcp" "$tool" $known "$@"
        ;;
    esac
    clock
    {
        say "=== gpufabric test $round $rail $role $peer rc=$rc start=$((started / 100)) seconds=$(((now - started) / 100))"
        excerpt
        say "=== gpufabric end"
    } >"$out.frame"
}

# --- a batch ----------------------------------------------------------------------------------------------------

# check_batch FILE: complete, that is, its last line is END with the count of the lines before.
check_batch() {
    lines=-1
    while IFS= read -r line; do
        [ "$line" = "END $lines" ] && return 0
        lines=$((lines + 1))
    done <"$1"
    return 1
}

finish_round() {
    [ -n "$current" ] || return 0
    wait
    for frame in "$work/$current".*.frame; do
        [ -e "$frame" ] && cat "$frame"
    done
    rm -f "$work/$current".*
}

begin_round() {
    current=$1
    begin=$((t0 + current * slot))
    # Nothing outlives its slot: TERM two seconds before the next one, KILL one second before it.
    end=$((begin + slot - 200))
    clock
    late=$(((now - begin) / 100))
    [ "$late" -ge 1 ] || wait_until "$begin"
}

# play FILE [START_IN]: all rounds of a batch, each in its slot.
play() {
    check_batch "$1" || die "the batch is not complete"
    start_in=${2:-}
    current=
    played=0
    missed=0
    while read -r round rail role peer tcp tool args; do
        case $round in
        BATCH)
            number=$rail
            slot=$((peer * 100))
            clock
            # "@" marks a start that was worked out when the batch was delivered.
            start_in=${start_in:-$role}
            case $start_in in @*) t0=${start_in#@} ;; *) t0=$((now + ${start_in%%.*} * 100)) ;; esac
            say "=== gpufabric batch $number begin $lines"
            continue
            ;;
        END) continue ;;
        esac
        if [ "$round" != "$current" ]; then
            finish_round
            begin_round "$round"
        fi
        if [ "$late" -ge 1 ]; then
            missed=$((missed + 1))
            say "=== gpufabric test $round $rail $role $peer rc=125 start=0 seconds=0"
            say "gpufabric: missed the round, $late s late"
            say "=== gpufabric end"
            continue
        fi
        played=$((played + 1))
        # shellcheck disable=SC2086 # args are words
        play_test "$begin" "$end" "$round" "$rail" "$role" "$peer" "$tcp" "$tool" $args </dev/null &
    done <"$1"
    finish_round
    say "=== gpufabric batch $number done $played $missed"
}

# prepare RAILS: the working folder with one line per rail: device port gid cpus, or error and the reason.
prepare() {
    umask 077
    work=$(mktemp -d "${TMPDIR:-/tmp}/gpufabric.XXXXXX") || die "no temporary folder"
    trap 'rm -rf "$work"' EXIT
    trap 'stop' TERM INT HUP
    while read -r word name netdev given _; do
        [ "$word" = rail ] || continue
        resolve "$netdev" "${given:--}"
        if [ -n "$error" ]; then
            say "error $error" >"$work/rail.$name"
        else
            say "$device $port $gid ${cpus:--}" >"$work/rail.$name"
        fi
    done <"$1"
}

# Ends what runs and goes; the timeouts of what cannot be reached hold anyway.
stop() {
    for file in "$work"/*.pid; do
        IFS= read -r pid 2>/dev/null <"$file" && kill -KILL "-$pid" "$pid" 2>/dev/null
    done
    rm -rf "$work"
    exit 143
}

run() {
    [ -z "${2:-}" ] || exec >"$2"
    prepare "$1"
    cat >"$work/batch"
    play "$work/batch" "${3:-}"
}

serve() {
    describe "$1"
    prepare "$1"
    next=1
    clock
    limit=$((now + $3 * 100))
    while [ "$now" -lt "$limit" ]; do
        if [ -e "$2/batch-$next" ]; then
            play "$2/batch-$next"
            next=$((next + 1))
            clock
            limit=$((now + $3 * 100))
        elif [ -e "$2/last" ]; then
            return 0
        else
            "$SLEEP" 1
        fi
        clock
    done
    say "=== gpufabric idle for $3 s"
}

deliver() {
    umask 077
    mkdir -p "$1" || die "cannot make the mailbox $1"
    cat >"$1/.incoming"
    check_batch "$1/.incoming" || die "the batch did not arrive complete"
    clock
    {
        read -r word number start_in slot
        [ "$word" = BATCH ] || die "the batch does not begin with BATCH"
        say "BATCH $number @$((now + ${start_in%%.*} * 100)) $slot"
        cat
    } <"$1/.incoming" >"$1/.ready"
    mv "$1/.ready" "$1/batch-$2"
    rm -f "$1/.incoming"
}

case "${1:-} $#" in
"describe 2") describe "$2" ;;
"run 2" | "run 3" | "run 4") run "$2" "${3:-}" "${4:-}" ;;
"serve 4") serve "$2" "$3" "$4" ;;
"deliver 3") deliver "$2" "$3" ;;
"finish 2") : >"$2/last" ;;
*) die "usage: tester.sh describe RAILS | run RAILS [LOG [START_IN]] | serve RAILS MAILBOX IDLE | deliver MAILBOX N | finish MAILBOX" ;;
esac
