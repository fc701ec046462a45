package main

import (
	"strings"
	"testing"
)

// What is typed to ask for the version is answered on standard output, in every spelling.
func TestEverySpellingOfTheQuestion(t *testing.T) {
	for _, args := range []string{"version", "--version", "version --format text"} {
		if out, _, err := cniscope(t, strings.Fields(args)...); err != nil || out != thisBuild().String()+"\n" {
			t.Errorf("%s: %q, %v", args, out, err)
		}
	}
}
