#!/bin/sh
# Installs the first node of a cluster with kubeadm and a CNI. After each step, cniscope waits until the
# step has worked. If it has not, the script stops, prints the reason, and exits with 1. Fix the
# reason and run the script again; finished steps are skipped.
#
#     sudo CNI=cilium ./install.sh
#     sudo CNI=https://github.com/flannel-io/flannel/releases/latest/download/kube-flannel.yml ./install.sh
#
# Needs containerd, kubeadm, kubelet, kubectl, cniscope, and for Cilium its command line program.
set -eu

CNI=${CNI:-cilium}                 # cilium, or the manifest of a CNI: a file or a URL
POD_CIDR=${POD_CIDR:-10.244.0.0/16} # Flannel's manifest has this one, too
API_SERVER=${API_SERVER:-$(hostname -I | cut -d' ' -f1)} # this node's address
TIMEOUT=${TIMEOUT:-5m}             # of each gate
DOCTOR=${DOCTOR:-cniscope doctor}
export KUBECONFIG=${KUBECONFIG:-/etc/kubernetes/admin.conf}

# gate WHAT: $DOCTOR is a command and its arguments, separated by blanks.
gate() {
	# shellcheck disable=SC2086
	$DOCTOR --wait "$1" --timeout "$TIMEOUT" || {
		echo "install.sh: stopped at gate $1 of: runtime cni agent ready dns" >&2
		exit 1
	}
}

systemctl enable --now containerd
gate runtime

# Cilium is to replace kube-proxy. Two service proxies disturb each other, so kubeadm installs none.
skip=
[ "$CNI" != cilium ] || skip=--skip-phases=addon/kube-proxy
# CoreDNS is kubeadm's last step. If an earlier one failed, kubeadm's next run says what to reset.
kubectl -n kube-system get deployment coredns >/dev/null 2>&1 ||
	kubeadm init --pod-network-cidr="$POD_CIDR" --apiserver-advertise-address="$API_SERVER" $skip

# Without kube-proxy, Cilium needs the API server's own address: that of its service leads nowhere yet.
if [ "$CNI" = cilium ]; then
	kubectl -n kube-system get daemonset cilium >/dev/null 2>&1 || cilium install --set kubeProxyReplacement=true \
		--set k8sServiceHost="$API_SERVER" --set k8sServicePort=6443 \
		--set ipam.operator.clusterPoolIPv4PodCIDRList="$POD_CIDR"
else
	kubectl apply -f "$CNI"
fi
gate cni
gate agent
gate ready

# CoreDNS was waiting for the network.
gate dns
echo "The node is ready. Workers join with: $(kubeadm token create --print-join-command)"
