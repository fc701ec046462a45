//go:build linux

package scope

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Ask asks the metrics server for a path.
func (s *Scope) Ask(t testing.TB, path string, accept ...string) (status int, body string) {
	t.Helper()
	at := regexp.MustCompile(`msg="serving metrics" address=(\S+)`).FindStringSubmatch(s.LogText())
	if at == nil {
		t.Fatal("no metrics are served")
	}
	r := harness.Must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at[1]+path, nil))(t)
	for _, a := range accept {
		r.Header.Set("Accept", a)
	}
	answer, err := http.DefaultClient.Do(r)
	harness.Check(t, err)
	defer answer.Body.Close()
	return answer.StatusCode, string(harness.Must(io.ReadAll(answer.Body))(t))
}

// Scrape returns the metrics' values by series.
func (s *Scope) Scrape(t testing.TB) map[string]float64 {
	t.Helper()
	_, text := s.Ask(t, "/metrics")
	return harness.Must(Values(text))(t)
}

// Values parses metrics.
func Values(text string) (map[string]float64, error) {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		v, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		values[line[:at]] = v
	}
	return values, nil
}
