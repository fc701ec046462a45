package doctor

import "github.com/cniscope/cniscope/pkg/doctor/fact"

// kubeletIsHealthy: kubelet answers its healthz with "ok".
func kubeletIsHealthy(f *fact.Facts) ([]Finding, error) {
	if f.Kubelet.Err != nil {
		return nil, f.Kubelet.Err
	}
	h := f.Kubelet.Value
	if h.Err == "" && h.Status == 200 {
		return nil, nil
	}
	if h.Err != "" && !h.Running {
		return nil, notApplicable("no kubelet runs here, and none answers at " + h.Address)
	}
	said := fact.Sayf("GET http://%s/healthz: %d %s", h.Address, h.Status, h.Body)
	if h.Err != "" {
		said = fact.Sayf("GET http://%s/healthz: %s", h.Address, h.Err)
	}
	return []Finding{{
		Level: Problem, Summary: "kubelet is not healthy", Evidence: []string{said},
		Remedy: []string{"systemctl status kubelet; journalctl -u kubelet -e", "if its healthz is elsewhere: --kubelet HOST:PORT"},
	}}, nil
}
