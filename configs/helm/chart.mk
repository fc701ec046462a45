# The Helm chart.

CHART := configs/helm/cniscope
HELM  := $(TOOLS_BIN)/helm
# The Kubernetes version that `helm template` and `helm lint` take a cluster to have is linked in.
HELM_KUBE := $(foreach p,chartutil lint/rules,-X helm.sh/helm/v3/pkg/$(p).k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$(p).k8sVersionMinor=36)
$(eval $(call part,helm,about 3 minutes,0,-ldflags "-s -w $(HELM_KUBE)",))

$(eval $(call part,ct,about 20 seconds,0,,))
$(TOOLS_BIN)/lintconf.yaml: $(built/ct)
	@install -m 0644 "$$(cd $(TOOLS)/ct && go list -m -f '{{.Dir}}' github.com/helm/chart-testing/v3)/etc/lintconf.yaml" $@

.PHONY: chart tools-helm test-chart debian-chart
chart: options $(built/helm) ## write examples/kubernetes/cniscope.yaml, the chart's rendering, and the alerts and the dashboard in the chart anew
	@mkdir -p bin
	@cp examples/prometheus/alerts.yaml $(CHART)/files/alerts.yaml
	@cp examples/grafana/cniscope.json $(CHART)/files/dashboard.json
	@$(HELM) template cniscope $(CHART) --namespace cniscope --set namespace.create=true --skip-tests > bin/rendered.yaml
	@{ cat configs/helm/example.txt; sed 1d bin/rendered.yaml; } > examples/kubernetes/cniscope.yaml
	@rm bin/rendered.yaml

tools-helm: debian-chart $(built/helm) $(TOOLS_BIN)/lintconf.yaml ## build helm and chart-testing, for test-chart

debian-chart:
	@$(TOOLS)/debian.sh yamllint

test-chart: tools tools-jaeger tools-kubernetes tools-helm ## the chart: lint, schema and rendering for every profile; as root on a real API server and kubelet, installed, upgraded, uninstalled
	go test ./test/chart -count=1
	$(if $(ROOT),go test ./test/kubernetes -run '^TestChart' -count=1 -timeout 30m -v,@echo "the API server and the kubelet need root")
