// Where the schemas of the operators' objects come from, which the chart renders: their files in
// these modules (test/kubernetes/crds_test.go).
module github.com/cniscope/cniscope/test/tools/crds

go 1.26.0

require (
	github.com/openshift/api v0.0.0-20240527133614-ba11c1587003
	github.com/prometheus-operator/prometheus-operator v0.86.1
)
