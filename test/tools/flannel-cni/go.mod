module github.com/cniscope/cniscope/test/tools/flannel-cni

go 1.14

require github.com/containernetworking/plugins v0.9.1

tool github.com/containernetworking/plugins/plugins/meta/flannel
