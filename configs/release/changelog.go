package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func notes(_ context.Context, r *release) error {
	return r.create("release-notes.md", func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\n\n---\n\nContainer image: `%s@%s`\n\nHow to check what you downloaded: "+
			"[SECURITY.md](https://github.com/cniscope/cniscope/blob/%s/SECURITY.md).\n",
			r.Notes, imageName, r.ImageDigest, r.Version)
		return err
	})
}

func (r *release) readChangelog(draft bool) error {
	text, err := os.ReadFile(filepath.Join(r.Root, "CHANGELOG.md"))
	if err == nil {
		r.Notes, err = section(string(text), r.Number)
	}
	if err != nil && draft {
		fmt.Printf("draft: %v\n", err)
		r.Notes = "A draft, to try it."
		return nil
	}
	return err
}

// heading matches a version's heading of Keep a Changelog's format: `## [1.2.3] - 2026-11-22`.
var heading = regexp.MustCompile(`(?m)^##[ \t]+\[([^\]\n]+)\](.*)$`)

func section(changelog, number string) (string, error) {
	changelog = strings.ReplaceAll(changelog, "\r\n", "\n")
	found := heading.FindAllStringSubmatchIndex(changelog, -1)
	for i, at := range found {
		if changelog[at[2]:at[3]] != number {
			continue
		}
		rest := strings.TrimSpace(changelog[at[4]:at[5]])
		if _, err := time.Parse("- "+time.DateOnly, rest); err != nil {
			return "", fmt.Errorf("CHANGELOG.md: the heading of %s ends in %q: write ## [%s] - YYYY-MM-DD, with its day",
				number, rest, number)
		}
		end := len(changelog)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		text := strings.TrimSpace(changelog[at[1]:end])
		if text == "" {
			return "", fmt.Errorf("CHANGELOG.md says nothing of %s below its heading", number)
		}
		return text, nil
	}
	err := fmt.Errorf("CHANGELOG.md does not have %s: put ## [%s] - YYYY-MM-DD above what is new in it, and commit "+
		"that", number, number)
	if len(found) == 0 {
		err = errors.Join(err, errors.New("it has no version at all"))
	}
	return "", err
}
