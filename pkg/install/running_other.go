//go:build !linux

package install

import (
	"context"
	"time"
)

func running(context.Context, string) (int, time.Time, error) {
	return 0, time.Time{}, errNoSystemd
}

func (t tree) newer(context.Context, string, string) bool { return false }

func configOf(int) string { return "" }
