#!/bin/bash
# Prints the folders of source that the list of words is made from: Go's library, and all
# modules of this project and of the runtime and plugins that its tests are pinned to.
set -euo pipefail
go env GOROOT | sed 's,$,/src,'
for module in . test/tools/containerd test/tools/plugins; do
	(cd "$module" && go list -m -f '{{if not .Main}}{{.Dir}}{{end}}' all)
done | grep . | grep -v 'golang.org/x/text@' | sort -u # whose tables are full of names of countries
