package doctor

import (
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// clockIsSet: the node's clock is kept by something, so that its spans line up with those
// of other nodes.
func clockIsSet(f *fact.Facts) ([]Finding, error) {
	if f.Clock.Err != nil {
		return nil, f.Clock.Err
	}
	if c := f.Clock.Value; !c.Synchronised {
		return []Finding{{
			Level: Warning, Summary: "the clock is not synchronised: traces of several nodes do not line up, and certificates may seem invalid",
			Evidence: []string{
				fact.Sayf("adjtimex: STA_UNSYNC, maximum error %s", c.MaxError.Round(time.Millisecond).String()),
				"it says " + f.Now.UTC().Format(time.RFC3339),
			},
			Remedy: []string{"systemctl enable --now chrony (or systemd-timesyncd); timedatectl shows it"},
		}}, nil
	}
	return nil, nil
}
