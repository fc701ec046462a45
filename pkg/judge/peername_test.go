package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestAPeerThatWasNotFoundIsNamedSo(t *testing.T) {
	for want, c := range map[string]model.Connection{
		"etcd":                         {Network: "unix", Address: "/run/db", Agent: &event.Actor{Name: "etcd"}},
		"/run/db (process not found)":  {Network: "unix", Address: "/run/db"},
		"a process that was not found": {Network: "unix"},
		"10.0.0.1:443":                 {Network: "tcp", Address: "10.0.0.1:443"},
	} {
		if got := peerName(&c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
