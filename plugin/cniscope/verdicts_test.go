package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/verdicts.md has every cause there is, and what it says of the recordings is said of them;
// how that is drawn is another matter.
func TestVerdictsAreDocumented(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	docs := read("../../docs/verdicts.md")
	judge, err := filepath.Glob("../../pkg/judge/*.go")
	if err != nil || len(judge) == 0 {
		t.Fatal("no rules: ", err)
	}
	for _, file := range judge {
		for _, cause := range regexp.MustCompile(`Cause\s+= "(\w+)"`).FindAllStringSubmatch(read(file), -1) {
			if !strings.Contains(docs, "`"+cause[1]+"`") {
				t.Errorf("docs/verdicts.md does not have %s", cause[1])
			}
		}
	}
	var drawn bytes.Buffer
	recorded, err := filepath.Glob("../../pkg/judge/testdata/*.rec.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(recorded, "../../docs/verdicts.rec.gz") {
		cmd := rootCmd()
		cmd.SetOut(&drawn)
		cmd.SetArgs([]string{"show", "--color", "never", file})
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
	}
	pictures := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(docs, -1)
	for _, picture := range pictures {
		for line := range strings.Lines(picture[1]) {
			if line = strings.TrimRight(line, " \n"); !strings.Contains(line, "│") && !strings.Contains(drawn.String(), line) {
				t.Errorf("not in a recording: %s", line)
			}
		}
	}
	if len(pictures) < 15 {
		t.Errorf("only %d pictures", len(pictures))
	}
}
