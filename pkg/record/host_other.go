//go:build !linux

package record

func kernel() string { return "" }

func bootID() string { return "" }
