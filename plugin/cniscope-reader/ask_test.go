package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/fleet"
	"github.com/cniscope/cniscope/pkg/fleet/access"
	"github.com/cniscope/cniscope/test/harness"
)

func developer(context.Context, string) (access.Identity, error) {
	return access.Identity{Authenticated: true, User: "system:serviceaccount:shop:default", Audiences: []string{fleet.Audience}}, nil
}

func TestTheTokenIsTheFirstLineOnly(t *testing.T) {
	open, w := io.Pipe() // kubectl's exec may keep it open
	defer w.Close()
	go func() { _, _ = io.WriteString(w, "  the-token\r\n") }()
	var got string
	v, err := asker(t.Context(), open, func(ctx context.Context, token string) (access.Identity, error) {
		got = token
		return developer(ctx, token)
	})
	if err != nil || got != "the-token" || v.Namespace != "shop" || v.Operator {
		t.Errorf("%q, %+v, %v", got, v, err)
	}
}

func TestWithoutATokenNobodyIsAsked(t *testing.T) {
	for name, input := range map[string]string{"nothing": "", "an empty line": "\ntoken\n", "blanks": "  \n"} {
		_, err := asker(t.Context(), strings.NewReader(input), func(context.Context, string) (access.Identity, error) {
			t.Errorf("%s: the API server is asked", name)
			return access.Identity{}, nil
		})
		harness.Equal(t, exitCode(err), fleet.NoToken, name, err)
	}
}

func TestATokenThatNeverEndsIsCut(t *testing.T) {
	_, err := asker(t.Context(), strings.NewReader(strings.Repeat("x", 1<<20)), func(ctx context.Context, token string) (access.Identity, error) {
		if len(token) > fleet.MaxToken {
			t.Errorf("a token of %d bytes", len(token))
		}
		return developer(ctx, token)
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAnAPIServerThatIsAwayIsNoRefusal(t *testing.T) {
	_, err := asker(t.Context(), strings.NewReader("t\n"), func(context.Context, string) (access.Identity, error) {
		return access.Identity{}, errors.New("connection refused")
	})
	harness.Equal(t, exitCode(err), fleet.Unchecked, err)
}

func TestHowItIsCalled(t *testing.T) {
	for _, args := range [][]string{
		{"ask"},
		{"ask", "everything"},
		{"ask", "calls", "node"},
		{"ask", "spans"},
		{"ask", "calls", "--format", "yaml"},
		{"ask", "calls", "--format", "protobuf"},
		{"ask", "calls", "--token", "x"},
		{"ask", "calls", "--kubeconfig", "x"},
	} {
		cmd := rootCmd()
		cmd.SetArgs(args)
		cmd.SetIn(strings.NewReader(""))
		var out bytes.Buffer
		cmd.SetOut(&out)
		if code := exitCode(cmd.Execute()); code != fleet.Misused || out.Len() > 0 {
			t.Errorf("%v: %d, %s", args, code, out.String())
		}
	}
}

// A user who may only exec must not set what the container's environment sets.
func TestAskHasNoOptionThatNamesAServerOrAFile(t *testing.T) {
	cmd := askCmd()
	for _, known := range []string{"namespace", "pod", "since", "after", "wait", "limit", "problems", "trace", "for", "format"} {
		if f := cmd.Flags().Lookup(known); f != nil {
			f.Hidden = true
		}
	}
	if more := strings.TrimSpace(cmd.Flags().FlagUsages()); more != "" {
		t.Errorf("new options of ask: think of docs/trust.md first:\n%s", more)
	}
}
