package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Every former name of an option is refused where it stands, and the present one is an option.
func TestAFormerNameIsAnErrorThatNamesThePresentOne(t *testing.T) {
	for former, now := range renamed {
		if strings.HasPrefix(former, "--") {
			continue // flags: see the program
		}
		if slices.Contains(allKeys(), former) || !slices.Contains(allKeys(), now) {
			t.Errorf("%s is now %s: the one must be no option, the other one", former, now)
		}
		section, name := splitKey(former)
		for at, text := range map[string]string{
			"2:1": fmt.Sprintf("[%s]\n%s = 1\n", section, name),
			"1:1": fmt.Sprintf("%s = 1\n", former),
		} {
			if section == "" {
				at, text = "1:1", name+" = 1\n"
			}
			_, err := Parse("f.toml", []byte(text))
			var p Problem
			if !errors.As(err, &p) || p.Key != former || p.What != "is now called "+now {
				t.Errorf("%q: %v", text, err)
			}
			if got := fmt.Sprintf("%d:%d", p.Line, p.Column); at == "2:1" && got != at {
				t.Errorf("%q is reported at %s", text, got)
			}
		}
	}
}
