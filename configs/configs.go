// Package configs embeds the files that a node gets, so that the program can install them.
package configs

import _ "embed"

// Options is cniscope.toml, with every option explained and none set.
//
//go:embed cniscope.toml
var Options string

// Unit is the systemd unit.
//
//go:embed systemd/cniscope.service
var Unit string
