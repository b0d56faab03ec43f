# hosts.sh: read by scripts that need several hosts where there is one machine: network namespaces, each with an address and a name of its
# own, joined by veth pairs to a bridge that lies in one more. Nothing outside them is touched, and all of it ends with the script.
#   hosts_missing      why there can be none here; "" where there can
#   make_hosts N       hosts 1 to N
#   limit_hosts RATE   what each sends and receives, such as 1gbit
#   cut_host K         takes its cable away; join_host K gives it back
#   on_host K COMMAND  runs a command there
#   on_hosts N QKV...  one rank of Open MPI on each of N hosts, started on the first; on_hosts_mpich the same with MPICH
#   drop_hosts         ends what runs there
hosts_prefix=qkv$$
hosts_folder=${hosts_folder:-$folder}
hosts_address=10.77.0
hosts_made=0

hosts_missing() {
    if [ "$(id -u)" != 0 ]; then echo "network namespaces need root"
    elif ! command -v ip >/dev/null || ! command -v tc >/dev/null; then echo "ip and tc are not there (Debian: iproute2)"
    elif ! unshare --net --uts true 2>/dev/null; then echo "no namespaces can be made here"; fi
}

make_hosts() {
    ip netns add "$hosts_prefix-0" && ip -n "$hosts_prefix-0" link add bridge type bridge && ip -n "$hosts_prefix-0" link set bridge up || return 1
    while [ "$hosts_made" -lt "$1" ]; do
        hosts_made=$((hosts_made + 1))
        host=$hosts_prefix-$hosts_made
        ip netns add "$host" &&
            ip -n "$hosts_prefix-0" link add "port$hosts_made" type veth peer name eth0 netns "$host" &&
            ip -n "$hosts_prefix-0" link set "port$hosts_made" master bridge up &&
            ip -n "$host" address add "$hosts_address.$hosts_made/24" dev eth0 &&
            ip -n "$host" link set lo up && ip -n "$host" link set eth0 up || return 1
    done
    # What a launcher takes for ssh: agent [-x] ADDRESS COMMAND...
    cat >"$hosts_folder/agent" <<-END
	#!/bin/sh
	[ "\$1" != -x ] || shift
	k=\${1##*.}
	shift
	exec ip netns exec $hosts_prefix-\$k unshare --uts sh -c "hostname host\$k; \$*"
	END
    chmod +x "$hosts_folder/agent"
}

limit_hosts() {
    k=0
    while [ "$k" -lt "$hosts_made" ]; do
        k=$((k + 1))
        tc -n "$hosts_prefix-$k" qdisc replace dev eth0 root tbf rate "$1" burst 128kb latency 100ms &&
            tc -n "$hosts_prefix-0" qdisc replace dev "port$k" root tbf rate "$1" burst 128kb latency 100ms || return 1
    done
}

cut_host() { ip -n "$hosts_prefix-0" link set "port$1" down; }
join_host() { ip -n "$hosts_prefix-0" link set "port$1" up; }

on_host() {
    k=$1
    shift
    ip netns exec "$hosts_prefix-$k" unshare --uts sh -c "hostname host$k"' && exec "$@"' sh "$@"
}

# Addresses of the first N, with commas.
host_list() { seq -s, -f "$hosts_address.%g" "$1"; }

# Options of Open MPI's mpirun. It notices a host that is cut off 5 seconds after the ranks say so.
hosts_options() {
    echo "--mca plm rsh --mca plm_rsh_agent $hosts_folder/agent --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0
        --mca oob_tcp_keepalive_time ${QKV_MPI_SILENCE:-20} --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 5
        -x QKV_MPI_SILENCE=${QKV_MPI_SILENCE:-20} --bind-to none"
}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

on_hosts() {
    n=$1
    shift
    # shellcheck disable=SC2046
    on_host 1 mpirun $(hosts_options) -n "$n" --host "$(host_list "$n")" "$@"
}

on_hosts_mpich() {
    n=$1
    shift
    # the namespaces share a memory, which hosts do not
    UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 MPIR_CVAR_NOLOCAL=1 on_host 1 mpirun.mpich -launcher ssh -launcher-exec "$hosts_folder/agent" -iface eth0 -n "$n" -hosts "$(host_list "$n")" "$@"
}

drop_hosts() {
    k=$hosts_made
    while [ "$k" -ge 0 ]; do
        # shellcheck disable=SC2046
        kill -KILL $(ip netns pids "$hosts_prefix-$k" 2>/dev/null) 2>/dev/null
        ip netns delete "$hosts_prefix-$k" 2>/dev/null
        k=$((k - 1))
    done
    hosts_made=0
}
