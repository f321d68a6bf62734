#!/bin/sh
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The tester: plays perftest on bare hosts and in pods alike. Needs a POSIX sh, perftest, timeout and sysfs;
# uses taskset, stdbuf and ethtool when they are there. It judges nothing: raw output goes out between markers.
#
#   tester.sh describe RAILS                what each rail is here
#   tester.sh ports RAILS                   what the physical ports of the rails show of module, FEC and counters
#   tester.sh port NETDEV                   the same of one port
#   tester.sh run RAILS [LOG [CLOCKS START]]
#                                           play one batch from standard input, from START of the controller's clock on
#   tester.sh serve RAILS MAILBOX IDLE      describe, then play batches from MAILBOX until told that it was the last
#   tester.sh deliver MAILBOX N READY       put the batch on standard input into the mailbox as number N
#   tester.sh finish MAILBOX                there will be no more batches
#
# RAILS has lines "rail NAME NETDEV [ADDRESS]"; ADDRESS "-" or none: the netdev's own is found.
# CLOCKS has lines "HERE THERE", seconds of both clocks: of the controller when it sent something, then of this host.
# READY: seconds of this host's clock when the controller was told that the batch can be sent.
# A batch: "BATCH n start_in slot", lines "round rail role peer port test args...", "END count". Test is one of perftest
# by its name without "ib_", or "mesh": pings and a short RDMA connection.
# Times in here are hundredths of a second of /proc/uptime, which never jumps.
# Starting a program costs up to half a second on some hosts: what the shell can do itself it does.

LC_ALL=C
export LC_ALL
SYS=${GPUFABRIC_SYS:-/sys}
PROC=${GPUFABRIC_PROC:-/proc}
SLEEP=${GPUFABRIC_SLEEP:-sleep}
# perftest accepts no larger GID index.
LARGEST_GID=64
# A container's log is rotated at some MiB: of so many tests in all it has the frames, of more a file in the mailbox.
LOGGED=1000
logged=0
mailbox=
seen_from=
work=
players=
NL='
'

say() { printf '%s\n' "$*"; }

die() {
    say "tester.sh: $*" >&2
    exit 2
}

# --- clock ------------------------------------------------------------------------------------------------------

clock() {
    read -r up _ <"$PROC/uptime"
    hundredths "$up"
    now=$hundredths
}

# hundredths SECONDS: 12, 12.3 or 12.345 in $hundredths; of a time that is over the whole seconds.
hundredths() {
    part=00
    case $1 in -*) ;; *.*) part=${1#*.}00 ;; esac
    part=${part%"${part#??}"}
    # 100 is put before the fraction so that 05 is not taken for an octal number.
    hundredths=$((${1%%.*} * 100 + 1$part - 100))
}

# from_now SECONDS: that time in $from_now.
from_now() {
    clock
    hundredths "$1"
    from_now=$((now + hundredths))
}

# begin_at CLOCKS START: the START of the controller's clock by this one, in $begin_at. The slower a delivery, the larger
# the difference of its line, so the smallest one is the nearest. Clocks drift apart: no line counts for long.
begin_at() {
    least=
    clock
    while read -r here there; do
        hundredths "$here"
        here=$hundredths
        hundredths "$there"
        difference=$((here - hundredths))
        if [ $((now - here)) -lt 60000 ] && [ "$difference" -lt "${least:-$((difference + 1))}" ]; then
            least=$difference
        fi
    done <"$1"
    [ -n "$least" ] || die "no line of the last ten minutes in $1"
    hundredths "$2"
    begin_at=$((hundredths + least))
}

# decimal HUNDREDTHS: as seconds in $decimal.
decimal() {
    part=$(($1 % 100))
    [ "$part" -ge 10 ] || part=0$part
    decimal=$(($1 / 100)).$part
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
    addresses_in_networks "$1"
    [ -n "$found" ] || lone_addresses "$1"
}

addresses_in_networks() {
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

# lone_addresses NETDEV: addresses of /32, which are in no network, in $found: those that ip shows. Without ip those whose
# GID is on the netdev. Otherwise the only one without a GID belongs to the netdev of the default route, and the only one
# with a GID that is not on another netdev to any other one.
lone_addresses() {
    if command -v ip >/dev/null 2>&1; then
        before=
        for word in $(timeout -k 1 5 ip -4 -o addr show dev "$1" scope global 2>/dev/null </dev/null); do
            [ "$before" != inet ] || found="$found ${word%/*}"
            before=$word
        done
        return
    fi
    lone=
    while read -r bar word kind _; do
        if [ "$bar" = "|--" ]; then
            last=$word
        elif [ "$bar $word $kind" = "/32 host LOCAL" ]; then
            case $last in 127.*) continue ;; esac
            case " $lone " in *" $last "*) ;; *) on_netdev "$last" "" || lone="$lone $last" ;; esac
        fi
    done <"$PROC/net/fib_trie"
    without=
    with=
    for last in $lone; do
        # In a shell of its own, since the device that was found before is still needed.
        own=$(find_roce "$1" "$last" && first "$SYS/class/infiniband/$device/ports/$port/gid_attrs/ndevs/$gid" && say "=$line")
        if [ -z "$own" ]; then
            without="$without $last"
        elif [ "$own" = "=$1" ]; then
            found="$found $last"
        elif [ "$own" = = ] || [ ! -e "$SYS/class/net/${own#=}" ]; then
            # A name of another network namespace.
            with="$with $last"
        fi
    done
    [ -z "$found" ] || return 0
    default_netdev
    if [ "$1" = "$default" ]; then
        found=$without
    elif [ -n "$with" ]; then
        found=$with
    else
        # An address of InfiniBand is not a GID. One without belongs to the default route if its netdev has no other.
        [ -z "$default" ] || addresses_in_networks "$default"
        if [ -z "$default" ] || [ -n "$found" ]; then found=$without; else found=; fi
    fi
    case $found in " "*" "*) found= ;; esac
}

# The netdev of the default route in $default.
default_netdev() {
    default=
    while read -r default dest _ _ _ _ _ mask _; do
        [ "$dest$mask" != 0000000000000000 ] || return 0
    done <"$PROC/net/route"
    default=
}

# on_netdev ADDRESS NETDEV: whether it is in a connected network of the netdev, or of any without NETDEV.
on_netdev() {
    number_of "$1"
    own=$number
    while read -r dev dest gateway _ _ _ _ mask _; do
        if [ "$dev $gateway" != "${2:-$dev} 00000000" ] || [ "$mask" = 00000000 ]; then
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
    default_netdev
    [ -z "$default" ] || own_addresses "$default"
    found=${found# }
    found=${found%% *}
}

# own_addresses6 NETDEV: its global IPv6 addresses that are in use, as GIDs, in $found.
own_addresses6() {
    found=
    while read -r own _ _ scope flags dev; do
        # 0x40 is tentative, 0x08 a duplicate.
        if [ "$dev" = "$1" ] && [ "$scope" = 00 ] && [ $((0x$flags & 0x48)) -eq 0 ]; then
            gid=
            while [ -n "$own" ]; do
                gid=$gid${gid:+:}${own%"${own#????}"}
                own=${own#????}
            done
            found="$found $gid"
        fi
    done 2>/dev/null <"$PROC/net/if_inet6"
}

# find_roce NETDEV ADDRESS: device, port, gid of the RoCE v2 GID that is this address, or that is ADDRESS with colons. The
# name of the netdev decides between several; another name still counts, since pods see names of other namespaces.
find_roce() {
    case $2 in
    *:*) want=$2 ;;
    *)
        number_of "$2"
        want=$(printf '0000:0000:0000:0000:0000:ffff:%04x:%04x' $((number >> 16)) $((number & 65535)))
        ;;
    esac
    device=
    beyond=
    for dir in "$SYS"/class/infiniband/*/ports/*/gids; do
        [ -d "$dir" ] || continue
        for file in "$dir"/*; do
            first "$file"
            [ "$line" = "$want" ] || continue
            index=${file##*/}
            first "${dir%/gids}/gid_attrs/types/$index"
            [ "$line" = "RoCE v2" ] || continue
            if [ "$index" -gt "$LARGEST_GID" ]; then
                beyond=$index
                continue
            fi
            first "${dir%/gids}/gid_attrs/ndevs/$index"
            [ -z "$device" ] || [ "$line" = "$1" ] || continue
            of_path "${dir%/gids}"
            gid=$index
            [ "$line" = "$1" ] && return 0
        done
    done
    [ -n "$device" ]
}

# find_ib NETDEV: device, port and GID index of an IPoIB netdev. Its address ends in the GID of its port, also that of a
# child in a pod; of a netdev without such an address the device's folder counts.
find_ib() {
    first "$SYS/class/net/$1/address"
    if [ ${#line} -eq 59 ]; then
        gid_of "$line"
        for file in "$SYS"/class/infiniband/*/ports/*/gids/*; do
            first "$file"
            [ "$line" = "$want" ] || continue
            of_path "${file%/gids/*}"
            gid=${file##*/}
            is_ib && [ "$gid" -le "$LARGEST_GID" ] && return 0
        done
    fi
    for dir in "$SYS"/class/infiniband/*/device/net/"$1"; do
        [ -d "$dir" ] || continue
        first "$SYS/class/net/$1/dev_port"
        of_path "${dir%/device/net/*}/ports/$((${line:-0} + 1))"
        gid=0
        is_ib && return 0
    done
    return 1
}

is_ib() {
    first "$SYS/class/infiniband/$device/ports/$port/link_layer"
    [ "$line" = InfiniBand ]
}

# gid_of ADDRESS: the last 16 of the 20 octets of an IPoIB address as sysfs writes a GID, in $want.
gid_of() {
    rest=${1#??:??:??:??:}
    want=
    while [ -n "$rest" ]; do
        octets=${rest%"${rest#?????}"}
        want=$want${want:+:}${octets%:*}${octets#*:}
        rest=${rest#?????}
        rest=${rest#:}
    done
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

# usable_cpus LIST: those of LIST that this tester may use, as a list in $cpus; taskset refuses a list without any.
# The answer stands in the status of whoever opens it, this shell.
usable_cpus() {
    allowed=
    while read -r word rest; do
        [ "$word" = Cpus_allowed_list: ] && allowed=$rest
    done 2>/dev/null <"$PROC/self/status"
    cpus=
    fields=$IFS
    IFS=,
    for near in $1; do
        for mine in $allowed; do
            low=${near%-*}
            high=${near#*-}
            [ "${mine%-*}" -gt "$low" ] && low=${mine%-*}
            [ "${mine#*-}" -lt "$high" ] && high=${mine#*-}
            [ "$low" -le "$high" ] && cpus=$cpus${cpus:+,}$low
            [ "$low" -lt "$high" ] && cpus=$cpus-$high
        done
    done
    IFS=$fields
}

# find_cgroup: the folder with the CPU quota of this tester in $cgroup, empty without a quota; the quota in CPUs in $quota.
# In a container its own is at the top, or where a path of the host leads to nothing.
find_cgroup() {
    cgroup=
    quota=-
    while IFS=: read -r _ kind own; do
        case ,$kind, in ,, | *,cpu,*) ;; *) continue ;; esac
        for cgroup in "$SYS/fs/cgroup${kind:+/cpu}$own" "$SYS/fs/cgroup${kind:+/cpu}"; do
            if [ -r "$cgroup/cpu.max" ]; then
                read -r most period <"$cgroup/cpu.max"
            else
                first "$cgroup/cpu.cfs_quota_us"
                most=$line
                first "$cgroup/cpu.cfs_period_us"
                period=$line
            fi
            if is_number "$most" && is_number "$period" && [ "$period" -gt 0 ]; then
                decimal $((most * 100 / period))
                quota=$decimal
                return
            fi
            most=
        done
    done 2>/dev/null <"$PROC/self/cgroup"
    cgroup=
}

# throttled: in how many periods the quota stopped this tester, of how many, in $stopped and $periods.
throttled() {
    stopped=0
    periods=0
    [ -n "$cgroup" ] || return 0
    while read -r word value; do
        case $word in nr_throttled) stopped=$value ;; nr_periods) periods=$value ;; esac
    done 2>/dev/null <"$cgroup/cpu.stat"
}

# resolve NETDEV ADDRESS: device port gid gid_type address mtu rate numa local_cpus cpus, or the reason in $error.
resolve() {
    error=
    device=
    address=
    beyond=
    gid_type="RoCE v2"
    if find_ib "$1"; then
        resolve_ib "$1" "${2:--}"
        return
    fi
    no_link "$1" && return
    addresses=$2
    if [ "${2:--}" = - ]; then
        own_addresses "$1"
        addresses=$found
    fi
    if [ -z "$addresses" ]; then
        own_addresses6 "$1"
        addresses=$found
    fi
    for address in $addresses; do
        if find_roce "$1" "$address"; then
            details "$1"
            return
        fi
    done
    error="$1 has no IPv4 address"
    [ -z "$address" ] || error="no RDMA device has a RoCE v2 GID for $address of $1"
    [ -z "$beyond" ] || error="the GID index of $address of $1 is $beyond, and perftest accepts 0 to $LARGEST_GID:\
 remove unused addresses of the port"
}

# resolve_ib NETDEV ADDRESS: of the port that find_ib found. It needs no address, and none of an IPoIB without a carrier.
resolve_ib() {
    gid_type=IB
    unconfigured "$1" && return
    addresses=
    first "$SYS/class/net/$1/carrier"
    if [ "$2" != - ]; then
        addresses=$2
    elif [ "$line" != 0 ]; then
        own_addresses "$1"
        addresses=${found# }
    fi
    address=${addresses%% *}
    address=${address:--}
    details "$1"
}

# unconfigured NETDEV: why the subnet of an InfiniBand port does not reach it. An IPoIB netdev without a carrier shows
# only that it is in no multicast group.
unconfigured() {
    first "$SYS/class/infiniband/$device/ports/$port/phys_state"
    state=${line#*: }
    first "$SYS/class/infiniband/$device/ports/$port/lid"
    lid=$line
    first "$SYS/class/infiniband/$device/ports/$port/state"
    case ${state:-LinkUp}.$line in
    LinkUp.*INIT* | LinkUp.*ARMED*)
        error="no subnet manager has configured $device/$port ($1): its state is ${line#*: } and its LID ${lid:-unknown}.\
 Start the subnet manager of the fabric, or check in its log why it does not activate the port"
        ;;
    LinkUp.* | LinkErrorRecovery.*) ;;
    *) error="port $port of $device ($1) has no link, its physical state is $state: cable, transceiver or switch port" ;;
    esac
    [ -n "$error" ]
}

# describe_ipv6: a rail with IPv6 addresses alone.
describe_ipv6() {
    case $address in *:*) ;; *) return 0 ;; esac
    more="address6=$address"
    address=-
    addresses=
}

# describe_ib: more words about the InfiniBand port in $more, where it is one. Counters of 4 to 16 bits stay at their
# largest value.
describe_ib() {
    more=
    [ "$gid_type" = IB ] || return 0
    path=$SYS/class/infiniband/$device
    first "$path/ports/$port/lid"
    more="lid=${line:--}"
    first "$path/ports/$port/lid_mask_count"
    more="$more${line:+ lmc=$line}"
    first "$path/ports/$port/sm_lid"
    more="$more sm_lid=${line:--}"
    first "$path/ports/$port/gids/$gid"
    more="$more prefix=${line%"${line#???????????????????}"}"
    keys=
    members=0
    for file in "$path/ports/$port/pkeys"/*; do
        first "$file"
        case $line in "" | 0x0000) continue ;; esac
        members=$((members + 1))
        [ "$members" -gt 128 ] || keys="$keys ${file##*/}:$line"
    done
    more="$more pkeys=\"${keys# }\""
    vf=no
    is_vf && vf=yes
    full=
    for one in symbol_error:65535 port_rcv_errors:65535 port_xmit_discards:65535 link_downed:255 \
        link_error_recovery:255 local_link_integrity_errors:15 excessive_buffer_overrun_errors:15; do
        first "$path/ports/$port/counters/${one%:*}"
        [ "$line" != "${one#*:}" ] || full=$full${full:+,}${one%:*}
    done
    more="$more vf=$vf full=${full:--}"
    active_mtu
}

# Whether the device is a virtual function: of a card of this host, or by its ID where a hypervisor passed it through.
is_vf() {
    [ -e "$path/device/physfn" ] && return 0
    first "$path/device/vendor"
    [ "$line" = 0x15b3 ] && first "$path/device/device"
    case $line in 0x1004 | 0x1014 | 0x1016 | 0x1018 | 0x101a | 0x101c | 0x101e | 0xa2d3) return 0 ;; esac
    return 1
}

# The MTU of an InfiniBand port, which only verbs show, in $mtu; empty without ibv_devinfo.
active_mtu() {
    mtu=
    command -v ibv_devinfo >/dev/null 2>&1 || return 0
    info=$(timeout -k 1 5 ibv_devinfo -d "$device" -i "$port" 2>/dev/null </dev/null)
    case $info in *active_mtu:*) ;; *) return 0 ;; esac
    info=${info#*active_mtu:}
    for word in ${info%%"$NL"*}; do
        is_number "$word" && mtu=$word
        return 0
    done
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
    local_cpus=$line
    usable_cpus "$local_cpus"
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
            describe_ib
            describe_ipv6
            say "rail $name device=$device port=$port netdev=$netdev gid=$gid gid_type=\"$gid_type\"" \
                "address=$address mtu=${mtu:--} rate=\"$rate\" numa=${numa:--} cpus=${cpus:--}" \
                "local_cpus=${local_cpus:--} addresses=\"${addresses# }\"${more:+ $more}"
        fi
    done <"$1"
    control_address
    first "$SYS/devices/system/clocksource/clocksource0/current_clocksource"
    source=$line
    first "$SYS/devices/system/cpu/online"
    online=$line
    cpus=
    [ -z "$online" ] || usable_cpus "$online"
    find_cgroup
    first "${GPUFABRIC_ETC:-/etc}/machine-id"
    probe_perftest
    # shellcheck disable=SC3045 # not in POSIX, but in dash, bash and busybox; otherwise "-"
    say "host memlock=$(ulimit -l 2>/dev/null || say -) perftest=$version" \
        "control=${found:--} clock=${source:--} machine_id=${line:--} binds=$binds labels=$labels cuda=$cuda" \
        "online=${online:--} allowed=${cpus:--} quota=$quota"
    say "=== gpufabric described $count"
}

# What perftest can do. $version: "?" when it does not say or hangs, "-" when perftest is not there; asking for it exits
# with 1. $binds: whether a client can bind its source address; older programs have a similar option that does something
# else. $labels: whether packets can have one flow label, or each queue pair one of a list; older programs ignore both.
# $cuda: how it can use GPU memory, "-" when its help does not come.
probe_perftest() {
    version=-
    binds=no
    labels=none
    cuda=-
    command -v ib_write_bw >/dev/null 2>&1 || return 0
    version=$(timeout -k 1 5 ib_write_bw --version 2>/dev/null </dev/null)
    version=${version##*Version: }
    version=${version:-?}
    help=$(timeout -k 1 5 ib_write_bw --help 2>/dev/null </dev/null)
    case $help in *--bind_source_ip*) binds=yes ;; esac
    case $help in *--flow_label=*) labels=one ;; esac
    # As "--flow_label=<value>", from 25.01 on "--flow_label=<fl0,fl1,fl2,...>".
    word=${help#*--flow_label=}
    case $labels.${word%%[!<a-z0-9,]*} in one.*,*) labels=list ;; esac
    case $help in
    *--use_cuda_dmabuf*--use_data_direct* | *--use_data_direct*--use_cuda_dmabuf*) cuda=data_direct ;;
    *--use_cuda_dmabuf*) cuda=dmabuf ;;
    *--use_cuda_bus_id*) cuda=peermem ;;
    *--report_gbits*) cuda=none ;;
    esac
}

# --- what a port counted, and its link --------------------------------------------------------------------------

# Before a test: the counters of RDMA port and network devices with their values, in a file; not those that only say
# how much was carried. A bond counts through its members.
count_before() {
    first "$SYS/class/net/$netdev/bonding/slaves"
    links=${line:-$netdev}
    # IPoIB loses its carrier when the LID of its port changes too, and what it drops says nothing of RDMA.
    [ "$gid" != - ] || links=
    set -- "$SYS/class/infiniband/$device/ports/$ibport"/*counters/*
    for one in $links; do
        set -- "$@" "$SYS/class/net/$one"/statistics/* "$SYS/class/net/$one/carrier_down_count"
    done
    for file; do
        case ${file##*/} in
        *_data | *_bytes | *_packets | [rt]x_pkts | sent_pkts | rcvd_pkts | lifespan | multicast | *_compressed) ;;
        rx_*_requests | [rt]x_*_req | rx_dct_connect | rdma_sends | rdma_recvs | ack_def* | active_* | watermark_*) ;;
        *)
            first "$file"
            # More than 18 digits do not fit the shell's numbers.
            case $line in "" | *[!0-9]* | ???????????????????*) ;; *) say "$line $file" ;; esac
            ;;
        esac
    done >"$out.before"
    physical_ports
    [ -z "$physical" ] || port_statistics "$out.ports"
    [ -z "$physical" ] || [ -z "$silent" ] || unread="ethtool printed no counters of$silent"
}

# The ports whose counters ethtool knows in $physical, or why there are none in $unread. A macvlan or a VF has none of the
# port: those of its PF count, where it is visible.
physical_ports() {
    physical=
    unread="the port of $netdev is not visible to its tester"
    command -v ethtool >/dev/null 2>&1 || unread="ethtool is not installed"
    [ "$unread" != "ethtool is not installed" ] || return 0
    set --
    for one in $links; do
        if [ -e "$SYS/class/net/$one/device" ] && [ ! -e "$SYS/class/net/$one/device/physfn" ]; then
            set -- "$@" "$SYS/class/net/$one"
        elif [ -e "$SYS/class/infiniband/$device/device/physfn" ]; then
            set -- "$@" "$SYS/class/infiniband/$device/device/physfn/net"/*
        else
            set -- "$@" "$SYS/class/infiniband/$device/device/net"/*
        fi
    done
    for path; do
        # A representor is next to the port in switchdev mode.
        first "$path/phys_port_name"
        case $line in pf*) continue ;; esac
        for driver in "$path/device/driver/module/drivers/pci:"*; do
            case ${driver##*:} in
            mlx5_core | mlx4_core | bnxt_en) physical="$physical ${path##*/}" ;;
            "*") ;;
            *) unread="the driver ${driver##*:} has no counters by priority" ;;
            esac
        done
    done
    [ -z "$physical" ] || unread=
}

# port_statistics FILE: what each priority carried and paused, and errors on the wire, by the names of these drivers. Before
# each port a line with its name; $silent: ports of which ethtool printed nothing.
port_statistics() {
    silent=
    for one in $physical; do
        say "=$one"
        timeout -k 1 2 ethtool -S "$one" 2>/dev/null | grep -E '^ *([rt]x_prio_?[0-7]_(bytes|pause|pause_duration|'\
'discards|buf_discard)|[rt]x_bytes_pri[0-7]|[rt]x_pfc_ena_frames_pri[0-7]|[rt]x_(discards|pause_ctrl|symbol_err|'\
'crc_errors|pcs_symbol_err|corrected_bits)(_phy)?|tx_pause_storm_[a-z]+_events|link_down_events_phy): ' || silent="$silent $one"
    done >"$1"
}

# grew NAME BEFORE NOW: add to $list, which stays short enough for the frame; what does not fit is counted in $left.
# Members of a bond have the same names. There is always room for amounts, and for what tells loss from another order.
grew() {
    [ "$3" = "$2" ] && return
    case $3 in "" | *[!0-9]* | ???????????????????*) return ;; esac
    [ "$3" -gt "$2" ] || return 0
    case ${1#vport_} in
    packet_seq_err | implied_nak_seq_err | rcvd_seq_err | seq_err_naks_rcvd | local_ack_timeout_err) room=800 ;;
    to_retransmits | roce_adp_retrans* | completer_retry_err) room=800 ;;
    *_bytes | *_bytes_pri? | *_pause_duration | *_corrected_bits*) room=1600 ;;
    *) room=480 ;;
    esac
    if [ "${list#*" $1=+"}" != "$list" ]; then
        rest=${list#*" $1=+"}
        list="${list%%" $1=+"*} $1=+$((${rest%% *} + $3 - $2))${rest#"${rest%% *}"}"
    elif [ ${#list} -lt $room ]; then
        list="$list $1=+$(($3 - $2))"
    else
        left=$((left + 1))
    fi
}

# The counters of ethtool after a test, in $list and $amounts: only when it printed the same of the same ports as before,
# since a line may be one of another member of a bond.
ports_after() {
    port_statistics "$out.again"
    while read -r name before <&3; do
        read -r again line <&4 || again=
        if [ "$again" != "$name" ]; then
            unread="ethtool did not print all counters of${silent:-$physical}"
            list=
            amounts=
            left=0
            return
        fi
        case $name in
        =*) member=${name#=} ;;
        *_bytes: | *_bytes_pri?: | *_pause_duration: | *_corrected_bits*)
            grown=$list
            list=$amounts
            grew "${name%:}" "$before" "$line"
            # Of a bond also which member carried them.
            case $links:$name in
            *" "*:*_bytes: | *" "*:*_bytes_pri?:) grew "member_${member}_${name%%_*}_bytes" "$before" "$line" ;;
            esac
            amounts=$list
            list=$grown
            ;;
        *) grew "${name%:}" "$before" "$line" ;;
        esac
    done 3<"$out.ports" 4<"$out.again"
}

# After a test: what grew since count_before, as " name=+n ...", errors and congestion in $grown, and in $amounts what
# grows on a healthy port too: bytes and pauses by priority, bits that FEC corrected.
count_after() {
    grown=
    amounts=
    list=
    left=0
    [ -n "$unread" ] || ports_after
    while read -r before file; do
        first "$file"
        case $file in
        "$SYS/class/net/"*) grew "netdev_${file##*/}" "$before" "$line" ;;
        *) grew "${file##*/}" "$before" "$line" ;;
        esac
    done <"$out.before"
    [ "$left" = 0 ] || list="$list not_listed=+$left"
    grown=$list
}

# What the processors did so far: hundredths of a second of all in $total, of that idle in $idle, and of programs that are
# not the tester's in $others. Kernel threads are none. Nothing without cgroup v2.
processors() {
    total=
    tested=
    while IFS= read -r line; do
        case $line in 0::*) line=$SYS/fs/cgroup${line#0::}/cpu.stat ;; *) continue ;; esac
        [ ! -r "$line" ] || while read -r key value; do
            [ "$key" != user_usec ] || tested=$((value / 10000))
        done <"$line"
    done 2>/dev/null <"$PROC/self/cgroup"
    [ -n "$tested" ] || return 0
    { read -r _ user nice system idle waiting irq soft stolen _ <"$PROC/stat"; } 2>/dev/null || return 0
    idle=$((idle + waiting))
    total=$((user + nice + system + idle + irq + soft + stolen))
    others=$((user + nice - tested))
}

# After a test and processors before it: adds to $grown how many percent of their time other programs took, if that was a
# third or more and less than a tenth was left.
taken() {
    [ -n "$total" ] || return 0
    span=$total
    unused=$idle
    share=$others
    processors
    [ "${total:-0}" -gt "$span" ] || return 0
    span=$((total - span))
    unused=$((idle - unused))
    share=$((others - share))
    [ $((unused * 10)) -lt "$span" ] && [ $((share * 3)) -ge "$span" ] || return 0
    grown="$grown cpu_percent_of_others=+$((share * 100 / span))"
}

# --- what a physical port shows ---------------------------------------------------------------------------------

# carriers NETDEV: the network devices of the ports that carry it: itself, the PF of a VF, or those below a bond or a VLAN.
carriers() {
    if [ -e "$SYS/class/net/$1/device/physfn" ]; then
        for path in "$SYS/class/net/$1/device/physfn/net"/*; do
            # Not a representor, which is next to the port in switchdev mode.
            first "$path/phys_port_name"
            case $line in pf*) ;; *) [ ! -e "$path" ] || say "${path##*/}" ;; esac
        done
        return
    elif [ -e "$SYS/class/net/$1/device" ]; then
        say "$1"
        return
    fi
    for path in "$SYS/class/net/$1"/lower_*; do
        [ ! -e "$path" ] || carriers "${path##*/lower_}"
    done
}

# read_ports RAILS: of the ports of all rails at the same time, since a module is read slowly.
read_ports() {
    mkdir "$work/ports"
    while read -r word name netdev _; do
        [ "$word" = rail ] || continue
        for one in $(carriers "$netdev"); do
            read_port "$name" "$one" >"$work/ports/$name $one" 2>/dev/null </dev/null &
        done
    done <"$1"
    wait
    cat "$work/ports"/* 2>/dev/null
    rm -rf "$work/ports"
}

# read_port RAIL NETDEV: in a time and a size that no tool can exceed. Nobody waits for a program that a driver does not let go.
read_port() {
    say "=== gpufabric port $1 $2"
    timeout -k 1 25 sh "$0" port "$2" || say "${NL}unread=its tools did not answer in time"
    say
}

# one_port NETDEV: in whole lines, since the begin of a number is another number. The last one is empty where all fit.
one_port() {
    {
        show_port "$1"
        say
    } | tr -s '\t ' ' ' | head -c 8000 | sed '$d'
}

# show_port NETDEV: lines of the tools, those of them that have a meaning (readings/port_state.py).
show_port() {
    read -r up _ <"$PROC/uptime"
    say "uptime: ${up%.*}"
    if command -v ethtool >/dev/null 2>&1; then
        timeout -k 1 5 ethtool -m "$1" | grep -E '^[[:space:]]*(Identifier|Vendor (name|PN|SN)|'\
'(Module temperature|Laser (output|tx|rx) power)( (high|low) (alarm|warning) threshold)?|Laser (tx )?bias current|'\
'(Transmit|Rcvr signal) avg optical power|Receiver signal average optical power)[[:space:]]*([(]Channel [0-9]+[)])?'\
'[[:space:]]*:'
        { timeout -k 1 2 ethtool -I --show-fec "$1" || timeout -k 1 2 ethtool --show-fec "$1"; } |
            grep -E '^[[:space:]]*(Active FEC encoding|corrected_blocks|uncorrectable_blocks)'
        physical=$1
        port_statistics /dev/stdout | grep -v '^='
    else
        say "unread=ethtool is not installed"
    fi
    show_link "$1"
    show_switch "$1"
}

# show_link NETDEV: what the firmware of a ConnectX port shows. InfiniBand has nothing else that shows its module.
show_link() {
    first "$SYS/class/net/$1/device/vendor"
    [ "$line" = 0x15b3 ] && [ ! -e "$SYS/class/net/$1/device/physfn" ] || return 0
    for tool in mlxlink mstlink; do
        command -v "$tool" >/dev/null 2>&1 || continue
        for path in "$SYS/class/net/$1/device/infiniband"/*; do
            timeout -k 1 8 "$tool" -d "${path##*/}" -m -c --json | grep -E '"(Identifier|Vendor (Name|Part Number|'\
'Serial Number)|Temperature \[C\]|(Rx|Tx) Power Current \[dBm\]|Bias Current \[mA\]|FEC|Raw Physical BER|'\
'Effective Physical (BER|Errors)|Symbol (BER|Errors)|Time Since Last Clear \[Min\])" *:'
            return
        done
    done
}

# show_switch NETDEV: to which switch port an InfiniBand port is connected, and what that one counted: damage to packets
# that this host sends is seen only there.
show_switch() {
    command -v smpquery >/dev/null 2>&1 || return 0
    first "$SYS/class/net/$1/dev_port"
    ibport=$((${line:-0} + 1))
    [ ! -e "$SYS/class/net/$1/device/physfn" ] || return 0
    for path in "$SYS/class/net/$1/device/infiniband"/*; do
        first "$path/ports/$ibport/link_layer"
        [ "$line" = InfiniBand ] || return 0
        set -- -C "${path##*/}" -P "$ibport"
        info=$NL$(timeout -k 1 2 smpquery "$@" -D nodeinfo 0,1)$NL
        field NodeType
        [ "$field" = Switch ] || return 0
        field Guid
        guid=$field
        info=$info$(timeout -k 1 2 smpquery "$@" -D portinfo 0,1 0)$NL
        field Lid
        lid=$field
        # The first one, which is that of the node.
        field LocalPort
        name=$(timeout -k 1 2 smpquery "$@" -D nodedesc 0,1)
        say "switch $field $guid ${name#"Node Description:"}"
        is_number "$field" && is_number "$lid" && command -v perfquery >/dev/null 2>&1 || return 0
        # Extended counters have 64 bits, where the switch has them. Of this port sysfs has the others.
        errors "$@" -x "$lid" "$field" | sed "s/^/wide_/"
        errors "$@" "$lid" "$field"
        errors "$@" -x | sed "s/^/own_/"
        return 0
    done
}

# errors ARGS...: the counters of errors that perfquery shows.
errors() {
    timeout -k 1 2 perfquery "$@" | grep -E '^(SymbolErrorCounter|LinkErrorRecoveryCounter|LinkDownedCounter|'\
'PortRcvErrors|PortXmitDiscards|LocalLinkIntegrityErrors):'
}

# field NAME: what smpquery printed of it first in $info, in $field.
field() {
    field=${info#*"$NL$1:"}
    [ "$field" != "$info" ] || field=
    field=${field%%"$NL"*}
    field=${field##*.}
}

# The link as it is now in $link: rate with width of the port, of the network device, of the PCIe slot.
see_link() {
    first "$SYS/class/infiniband/$device/ports/$ibport/rate"
    link="rate=\"$line\""
    first "$SYS/class/net/$netdev/operstate"
    link="$link state=${line:--}"
    first "$SYS/class/net/$netdev/carrier"
    link="$link carrier=${line:--}"
    first "$SYS/class/net/$netdev/mtu"
    link="$link mtu=${line:--}"
    local_to "$netdev" current_link_speed
    speed=$line
    local_to "$netdev" current_link_width
    [ -z "$line" ] || link="$link pcie=\"$speed x$line\""
}

# --- one test ---------------------------------------------------------------------------------------------------

# A listening socket on the port is seen in the tables, where listeners come before connections; connecting to look
# would kill a waiting server.
port_in_use() {
    for table in "$PROC/net/tcp" "$PROC/net/tcp6"; do
        [ -r "$table" ] || continue
        while read -r _ local _ state _; do
            case $state in
            st) ;;
            0A) [ $((0x${local##*:})) -eq "$1" ] && return 0 ;;
            *) break ;;
            esac
        done <"$table"
    done
    return 1
}

# What the arguments ask for: how long a run takes at least, how addresses are exchanged, whose memory.
asked_of() {
    duration=0
    exchange=plain
    memory=host
    for word; do
        case $word in
        -R | --rdma_cm) exchange=cm ;;
        --use_cuda | --use_cuda=* | --use_cuda_bus_id | --use_cuda_bus_id=*) memory=cuda:peermem ;;
        --use_cuda_dmabuf) memory=cuda:dmabuf ;;
        --use_data_direct) memory=cuda:data_direct ;;
        esac
    done
    while [ $# -gt 1 ]; do
        [ "$1" = -D ] && duration=$2
        shift
    done
}

# attempt SECONDS COMMAND...: under timeout, in a process group that is killed at the end whatever happened to it.
attempt() {
    # timeout takes 0 for "never".
    seconds=$(($1 > 0 ? $1 : 1))
    shift
    clock
    ran=$now
    exec 5>"$out.stdout" 6>"$out.stderr"
    # shellcheck disable=SC2086 # a word or none
    $own_group timeout -k 1 "$seconds" "$@" >&5 2>&6 </dev/null 5>&- 6>&- &
    pid=$!
    say "$pid" >"$out.pid"
    wait "$pid" 2>/dev/null
    rc=$?
    kill -KILL "-$pid" 2>/dev/null
    : >"$out.pid"
    clock
    ran=$((now - ran))
    shorten 5 "$out.stdout"
    shorten 6 "$out.stderr"
}

# shorten FD FILE: of more than 64 KiB only begin and end, since a shell reads slowly. FD is where FILE was written: its
# position is how much that was.
shorten() {
    read -r _ written 2>/dev/null <"/proc/self/fdinfo/$1" || written=0
    [ "$written" -le 65536 ] || {
        head -c 32768 "$2"
        say
        tail -c 32768 "$2"
    } >"$2.short"
    [ "$written" -le 65536 ] || mv "$2.short" "$2"
}

# test_once ROLE PEER PORT TEST ARGS...: result in $rc and the files $out.*
test_once() {
    role=$1 peer=$2 tcp=$3 tool=ib_$4
    shift 4
    set -- -p "$tcp" "$@"
    # Of InfiniBand the schedule has the GID where it is needed.
    [ "$gid" = - ] || set -- -x "$gid" "$@"
    set -- "$tool" -d "$device" -i "$ibport" "$@"
    command -v stdbuf >/dev/null 2>&1 && set -- stdbuf -oL "$@"
    [ "$cpus" = - ] || set -- taskset -c "$cpus" "$@"
    connect_by "$tool" "$@"
}

# connect_by PROGRAM COMMAND...: the side of $role; a server waits until the end of its slot.
connect_by() {
    if ! command -v "$1" >/dev/null 2>&1; then
        refuse "$1 is not installed"
        return
    fi
    shift
    if [ "$role" = server ] && port_in_use "$tcp"; then
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
        if [ $((end - now)) -le $((duration * 100 + 150)) ] || ! nobody_listened; then
            return 0
        fi
        # One that began less than a second late listens soon; another one may never.
        if [ $((now - begin)) -ge 250 ] || ! "$SLEEP" 0.2 2>/dev/null; then
            "$SLEEP" 1
        fi
        clock
    done
}

# Event 8 is how RDMA-CM says that the other side rejected the connection: no server there yet.
nobody_listened() {
    while IFS= read -r line; do
        case $line in *"Couldn't connect to"* | *"Unexpected CM event bl blka 8"*) return 0 ;; esac
    done <"$out.stderr"
    return 1
}

refuse() {
    rc=125
    : >"$out.stderr"
    say "gpufabric: $*" >"$out.stdout"
}

# --- the mesh: whether two ports reach each other -----------------------------------------------------------------

# mesh_test ROLE PEER PORT -s SIZE -m MTU: pings of packets of SIZE bytes that nothing on their way may cut, and an RDMA
# connection; a probe only pings, bound to its own network device.
mesh_test() {
    role=$1 peer=$2 tcp=$3 size=$5
    first "$SYS/class/net/$netdev/address"
    mac=$line
    first "$SYS/class/net/$netdev/mtu"
    [ "${line:-0}" -ge "$size" ] || size=${line:-0}
    if [ "$role" = probe ]; then
        ping_peer >"$out.pings"
    else
        ping_peer >"$out.pings" &
        pinger=$!
        connect_peer "$7"
        wait "$pinger"
    fi
    neighbour
    {
        say "mesh mac=${mac:--} neighbour=$neighbour"
        cat "$out.pings"
        if [ "$role" != probe ]; then
            say "connect rc=$rc"
            cat "$out.stdout" "$out.stderr"
        fi
    } >"$out.mesh"
    mv "$out.mesh" "$out.stdout"
    : >"$out.stderr"
    rc=0
}

# A large packet may be lost on its way; then a small one shows whether that is because of its size.
ping_peer() {
    ping_once "$size"
    case $role$code in probe* | *r0 | *t0 | *125) ;; *) ping_once 84 ;; esac
}

# ping_once SIZE: with headers of 28 bytes, and what ping says beside its answers.
ping_once() {
    set -- "$1" -I "$address"
    [ "$role" != probe ] || set -- "$1" -I "$netdev" -I "$address"
    wanted=$1
    shift
    pinged="gpufabric: $no_ping"
    code=125
    if [ -z "$no_ping" ]; then
        pinged=$(timeout -k 1 3 ping -n -M 'do' -s $((wanted - 28)) -c 3 -i 0.2 -W 1 "$@" "$peer" 2>&1 </dev/null)
        code=$?
        # A small packet is sent only after a large one, and takes the same route.
        [ "$code" != 1 ] || [ "$wanted" = 84 ] || pinged=$(no_route)$NL$pinged
    fi
    say "ping size=$wanted rc=$code"
    count=0
    while IFS= read -r line && [ "$count" -lt 6 ]; do
        case $line in "" | PING* | ---* | rtt* | *" bytes from "*) continue ;; esac
        printf '%.120s\n' "$line"
        count=$((count + 1))
    done <<END
$pinged
END
}

# What the kernel says when it has no route from the rail's address to the peer: a ping that is bound to an address is only
# not answered. A probe needs no route, and those of a VRF are not looked up here.
no_route() {
    [ "$role" != probe ] && [ ! -e "$SYS/class/net/$netdev/master" ] || return 0
    if command -v ip >/dev/null 2>&1; then
        set -- ip -4 route get "$peer" from "$address"
    else
        # Without the address, which may have a routing table of its own.
        case $NL$(cat "$PROC/net/fib_trie" 2>/dev/null) in "$NL" | *"${NL}Id "*) return 0 ;; esac
        set -- ping -n -c 1 -W 1 "$peer"
    fi
    timeout -k 1 2 "$@" 2>&1 >/dev/null </dev/null
}

# connect_peer MTU: the result is in $rc and the files $out.*.
connect_peer() {
    set -- ibv_rc_pingpong -d "$device" -i "$ibport" -g "$gid" -p "$tcp" -m "$1" -s 4096 -n 20
    connect_by "$1" "$@"
}

# The MAC address that this host has learned for the peer's address, in $neighbour: none when there was no answer, - when
# it did not ask, as where a router is between them or the entry is permanent.
neighbour() {
    neighbour=-
    while read -r ip _ flags hardware _ dev; do
        [ "$ip $dev" = "$peer $netdev" ] || continue
        case $flags in 0x0) neighbour=none ;; 0x2) neighbour=$hardware ;; esac
    done <"$PROC/net/arp"
}

# Why there is no ping for full-size packets, in $no_ping: that of busybox has no -M.
find_ping() {
    [ -z "${no_ping+known}" ] || return 0
    no_ping="ping of iputils is not installed"
    case $(timeout -k 1 2 ping -V 2>&1 </dev/null) in
    *iputils*) no_ping= ;;
    # A program with capabilities that this container does not have is not even started.
    *"Operation not permitted"* | *"Permission denied"*) no_ping="ping is not permitted here" ;;
    esac
}

# --- its frame --------------------------------------------------------------------------------------------------

# last_lines BYTES TEXT: as many of the last whole lines as fit, in $kept; of a line that is too long its begin.
last_lines() {
    kept=$2
    while [ ${#kept} -gt "$1" ]; do
        case $kept in
        *"$NL"?*) kept=${kept#*"$NL"} ;;
        *)
            [ "$1" -gt 1 ] || kept=
            [ -z "$kept" ] || kept=$(printf "%.$(($1 - 1))s" "$kept")$NL
            ;;
        esac
    done
}

# each_line FILE DO: DO for the first 3000 lines and, when there are more, the last ones: a shell reads slowly.
each_line() {
    count=0
    while [ "$count" -lt 3000 ] && { IFS= read -r line || [ -n "$line" ]; }; do
        "$2" "$line"
        count=$((count + 1))
    done <"$1"
    [ "$count" -ge 3000 ] || return 0
    tail -c 3000 "$1" >"$out.tail"
    while IFS= read -r line || [ -n "$line" ]; do
        "$2" "$line"
    done <"$out.tail"
}

# keep LINE: sort a line of output into $proof (that GPU memory was used), $table, or $banner (all before the table).
# Addresses and what CUDA says on its way are of no use.
keep() {
    case $1 in
    *" address: LID "* | *" address:  LID "* | *GID:* | ---* | *\*\*\** | *Waiting\ for\ client* | "") ;;
    "Listing all CUDA "* | "CUDA device "*PCIe* | *"CUDA Ctx" | "deallocating "* | "initializing CUDA") ;;
    *"GPU buffer"* | "Host allocation selected"* | "CUDA device integrated: 1")
        [ ${#proof} -gt 250 ] || proof=$proof$1$NL
        ;;
    *)
        if [ -n "$heading" ]; then
            table=$table$1$NL
        else
            case $1 in *"#bytes"*) heading=$1$NL ;; *) banner=$banner$1$NL ;; esac
        fi
        ;;
    esac
    if [ ${#banner} -gt 4000 ]; then
        last_lines 2000 "$banner"
        banner=$kept
    elif [ ${#table} -gt 4000 ]; then
        last_lines 2000 "$table"
        table=$kept
    fi
}

keep_error() {
    errors=$errors$1$NL
    [ ${#errors} -le 2000 ] || last_errors
}

last_errors() {
    last_lines 500 "$errors"
    errors=$kept
}

# excerpt ROOM: in ROOM bytes proof, banner, table, errors; banner and table lose their begin when there is too much.
excerpt() {
    proof='' banner='' heading='' table='' errors=''
    each_line "$out.stdout" keep
    each_line "$out.stderr" keep_error
    last_errors
    room=$(($1 - ${#proof} - ${#errors} - ${#heading}))
    [ "$room" -ge 0 ] || room=0
    # The end of the banner is kept in any case: it has the MTU.
    last_lines 300 "$banner"
    last_lines $((room > ${#kept} ? room - ${#kept} : 0)) "$table"
    table=$kept
    last_lines $((room - ${#table})) "$banner"
    printf '%s' "$proof" "$kept" "$heading" "$table" "$errors"
}

# play_test ROUND RAIL ROLE PEER PORT TEST ARGS...: in the background; leaves its frame in a file.
play_test() {
    set +f
    round=$1 rail=$2 role=$3 peer=$4 tcp=$5 tool=$6
    shift 6
    # One port may serve several peers in a round; they differ in the TCP port.
    out=$work/$round.$rail.$tcp
    asked_of "$@"
    clock
    started=$now
    ran=0
    grown=
    amounts=
    unread="nothing was run"
    used=
    link=
    link_before=
    # Whoever ends the tester ends this too, and what it started last: its number is known at once.
    inherited=$!
    trap '[ "$!" = "$inherited" ] || kill -KILL "-$!" "$!" 2>/dev/null; exit 143' TERM
    device=error address="there is no rail $rail here"
    { read -r device ibport cpus netdev gid address <"$work/rail.$rail"; } 2>/dev/null
    if [ "$device" = error ]; then
        refuse "$address"
    elif [ "$tool" = mesh ]; then
        mesh_test "$role" "$peer" "$tcp" "$@"
    else
        see_link
        link_before=$link
        count_before
        processors
        throttled
        quota_before="$stopped $periods"
        test_once "$role" "$peer" "$tcp" "$tool" "$@"
        throttled
        [ "$periods" -le "${quota_before#* }" ] ||
            used="nr_throttled=+$((stopped - ${quota_before% *})) nr_periods=+$((periods - ${quota_before#* }))"
        count_after
        taken
        see_link
    fi
    clock
    frame >"$out.frame"
}

frame() {
    decimal $((now - started))
    head="$round $rail $role $peer rc=$rc start=$((started / 100)) seconds=$decimal"
    decimal "$late"
    head="$head late=$decimal"
    decimal "$ran"
    head="=== gpufabric test $head ran=$decimal exchange=$exchange memory=$memory$NL"
    [ -z "$grown" ] || head="${head}counters$grown$NL"
    [ -z "$unread" ] || amounts=" error=\"$unread\""
    head="${head}amounts$amounts$NL"
    [ -z "$used" ] || head="${head}cpu $used$NL"
    [ "$link_before" = "$link" ] || head="${head}link_before $link_before$NL"
    [ -z "$link" ] || head="${head}link $link$NL"
    printf '%s' "$head"
    excerpt $((2000 - ${#head} + ${#amounts}))
    say "=== gpufabric end"
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

# is_number TEXT: not negative, and without zeros in front, which make it octal for a shell.
is_number() {
    case $1 in "" | *[!0-9]* | ??????????* | 0?*) return 1 ;; esac
}

# is_start TEXT: seconds from now, or "@" and a time of this host.
is_start() {
    case ${1#@} in "" | - | -. | .* | *[!0-9.-]* | ?*-* | *.*.* | 0[0-9]* | -0[0-9]* | ????????????????*) return 1 ;; esac
}

is_address() {
    case $1 in *[!0-9.]* | .* | *. | *..* | *.*.*.*.* | ????????????????*) return 1 ;; *.*.*.*) ;; *) return 1 ;; esac
}

# check_lines FILE: nothing but tests as the controller plans them. What others report about themselves is in the lines,
# and perftest runs as root: no other tool, no other option, nothing that a shell would work on.
check_lines() {
    wrong=
    at=first
    while read -r round rail role peer tcp tool args; do
        case $at$round in
        firstBATCH) is_number "$rail" && is_start "$role" && is_number "$peer" && is_number "${tcp:-0}" ;;
        first* | last* | nextBATCH) false ;;
        nextEND) is_number "$rail" ;;
        *)
            set -f
            # shellcheck disable=SC2086 # args are words
            is_number "$round" && is_number "$tcp" && is_address "$peer" && is_test "$rail" "$role" "$tool" &&
                are_options $args
            ;;
        esac || wrong=${round:-"(blank)"}
        set +f
        [ -z "$wrong" ] || return 1
        at=next
        [ "$round" != END ] || at=last
    done <"$1"
}

is_test() {
    case $1 in "" | *[!A-Za-z0-9_.-]*) return 1 ;; esac
    case "$2 $3" in
    "client write_bw" | "client read_bw" | "client send_bw" | "client write_lat" | "client read_lat") ;;
    "server write_bw" | "server read_bw" | "server send_bw" | "server write_lat" | "server read_lat") ;;
    "client send_lat" | "server send_lat" | "client mesh" | "server mesh" | "probe mesh") ;;
    *) return 1 ;;
    esac
}

are_options() {
    while [ $# -gt 0 ]; do
        case $1 in
        -F | -b | -R | --report_gbits | --use_hugepages | --use_cuda_dmabuf | --use_data_direct) ;;
        -c) [ "${2:-}" = RC ] && shift ;;
        -[qstDfmInxST]) is_number "${2:-}" && shift ;;
        --tclass=* | --use_cuda=* | --pkey_index=* | --dlid=*) is_number "${1#*=}" ;;
        --flow_label=*) are_labels "${1#*=}" ;;
        --bind_source_ip=*) is_address "${1#*=}" ;;
        --use_cuda_bus_id=*) case ${1#*=} in "" | *[!0-9A-Fa-f:.]*) false ;; esac ;;
        *) false ;;
        esac || return 1
        shift
    done
}

are_labels() {
    case $1 in "" | *[!0-9,]* | ,* | *, | *,,*) return 1 ;; esac
}

finish_round() {
    [ -n "$current" ] || return 0
    wait
    players=
    # Of a test whose shell was killed, its perftest may still be there.
    kill_tests
    for frame in "$work/$current".*.frame; do
        [ -e "$frame" ] && cat "$work/$current".*.frame >&3
        break
    done
    rm -f "$work/$current".*
}

# The process groups of all tests that run.
kill_tests() {
    for file in "$work"/*.pid; do
        IFS= read -r pid 2>/dev/null <"$file" && kill -KILL "-$pid" "$pid" 2>/dev/null
    done
    return 0
}

begin_round() {
    current=$1
    begin=$((t0 + current * slot))
    # Time limits are whole seconds: TERM comes in the last second of the slot, KILL in the next one. What that costs
    # the next round, less than a second, its client's delay makes up for.
    end=$((begin + slot))
    clock
    late=$((now - begin))
    skip=$((late >= 100))
    if [ "$skip" = 0 ]; then
        wait_until "$begin"
        late=$((now - begin))
    fi
    late=$((late + unsure))
}

# play FILE [START_IN]: all rounds of a batch, each in its slot.
play() {
    check_batch "$1" || die "the batch is not complete"
    check_lines "$1" || die "the batch has a line that is not valid, in round $wrong"
    start_in=${2:-}
    current=
    played=0
    missed=0
    while read -r round rail role peer tcp tool args; do
        case $round in
        BATCH)
            number=$rail
            slot=$((peer * 100))
            # By how much the start may be wrong.
            unsure=${tcp:-0}
            # "@" marks a start that was worked out when the batch was delivered.
            start_in=${start_in:-$role}
            case $start_in in
            @*) t0=${start_in#@} ;;
            *) from_now "$start_in" && t0=$from_now ;;
            esac
            say "=== gpufabric batch $number begin $lines"
            choose_log
            continue
            ;;
        END) continue ;;
        esac
        [ "$tool" != mesh ] || find_ping
        if [ "$round" != "$current" ]; then
            finish_round
            begin_round "$round"
        fi
        if [ "$skip" = 1 ]; then
            missed=$((missed + 1))
            decimal "$late"
            say "=== gpufabric test $round $rail $role $peer rc=125 start=0 seconds=0 late=$decimal" >&3
            say "gpufabric: missed the round, $((late / 100)) s late" >&3
            say "=== gpufabric end" >&3
            continue
        fi
        played=$((played + 1))
        set -f
        # shellcheck disable=SC2086 # args are words
        play_test "$round" "$rail" "$role" "$peer" "$tcp" "$tool" $args </dev/null &
        players="$players $!"
        set +f
    done <"$1"
    finish_round
    [ -z "$seen_from" ] || read_ports "$seen_from"
    if [ "$logged" -gt "$LOGGED" ]; then
        say "=== gpufabric batch $number done $played $missed" >&3
        read -r _ written </proc/self/fdinfo/3
        say "=== gpufabric batch $number kept $written"
    fi
    say "=== gpufabric batch $number done $played $missed"
}

# choose_log: frames go to 3, which is the output, or a file when the log of the container would be too long.
choose_log() {
    [ -z "$mailbox" ] || logged=$((logged + lines))
    if [ "$logged" -gt "$LOGGED" ]; then
        exec 3>"$mailbox/kept-$number"
        say "=== gpufabric batch $number begin $lines" >&3
    else
        exec 3>&1
    fi
}

# prepare RAILS: the working folder with one line per rail: device port cpus netdev gid address, or error and the reason.
prepare() {
    umask 077
    work=$(mktemp -d "${TMPDIR:-/tmp}/gpufabric.XXXXXX") || die "no temporary folder"
    trap 'rm -rf "$work"' EXIT
    trap 'stop' TERM INT HUP
    # The timeout of coreutils makes a process group of its own, that of busybox none.
    own_group=
    case $(timeout --version 2>/dev/null) in
    *coreutils*) ;;
    *) command -v setsid >/dev/null 2>&1 && own_group=setsid ;;
    esac
    find_cgroup
    while read -r word name netdev given _; do
        [ "$word" = rail ] || continue
        resolve "$netdev" "${given:--}"
        if [ -n "$error" ]; then
            say "error - - - - $error" >"$work/rail.$name"
        else
            [ -z "$cpus" ] || taskset -c "$cpus" true >/dev/null 2>&1 || cpus=
            [ "$gid_type" != IB ] || gid=-
            say "$device $port ${cpus:--} $netdev $gid $address" >"$work/rail.$name"
        fi
    done <"$1"
}

# Ends what runs and goes, those first who would start another; the timeouts of what cannot be reached hold anyway.
stop() {
    # shellcheck disable=SC2086 # process numbers
    [ -z "$players" ] || kill -TERM $players 2>/dev/null
    kill_tests
    rm -rf "$work"
    exit 143
}

run() {
    at=
    [ -z "${3:-}" ] || { begin_at "$3" "$4" && at=@$begin_at; }
    [ -z "${2:-}" ] || exec >"$2"
    prepare "$1"
    # A pod does not see the physical ports: those of its host are read there.
    seen_from=$1
    cat >"$work/batch"
    play "$work/batch" "$at"
}

# ports RAILS: by itself.
ports() {
    umask 077
    work=$(mktemp -d "${TMPDIR:-/tmp}/gpufabric.XXXXXX") || die "no temporary folder"
    trap 'rm -rf "$work"' EXIT
    read_ports "$1"
}

serve() {
    describe "$1"
    mailbox=$2
    mkdir -p "$mailbox"
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
    IFS= read -r line
    clock
    {
        say "$line"
        cat
    } >"$1/.incoming"
    check_batch "$1/.incoming" || die "the batch did not arrive complete"
    # The start was worked out between READY and now. The middle is wrong by half of that time at most.
    hundredths "$3"
    unsure=$(((now - hundredths) / 2))
    {
        read -r word number start_in slot
        [ "$word" = BATCH ] || die "the batch does not begin with BATCH"
        case $start_in in @*) false ;; *) is_start "$start_in" ;; esac || die "the batch has no valid start"
        hundredths "$start_in"
        begin=$((now + hundredths - unsure))
        # Clients begin a second after their servers: that makes up for less than 0.3 s in any case.
        [ "$unsure" -ge 30 ] || unsure=0
        say "BATCH $number @$begin $slot $unsure"
        cat
    } <"$1/.incoming" >"$1/.ready"
    mv "$1/.ready" "$1/batch-$2"
    rm -f "$1/.incoming"
}

case "${1:-} $#" in
"describe 2") describe "$2" ;;
"ports 2") ports "$2" ;;
"port 2") one_port "$2" ;;
"run 2" | "run 3" | "run 5") run "$2" "${3:-}" "${4:-}" "${5:-}" ;;
"serve 4") serve "$2" "$3" "$4" ;;
"deliver 4") deliver "$2" "$3" "$4" ;;
"finish 2") : >"$2/last" ;;
*) die "usage: tester.sh describe RAILS | ports RAILS | port NETDEV | run RAILS [LOG [CLOCKS START]] | serve RAILS MAILBOX IDLE | deliver MAILBOX N READY | finish MAILBOX" ;;
esac
