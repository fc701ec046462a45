# A Windows node under wine: docs/windows.md. The programs are real where that can be: containerd.exe, cniscope.exe.

WINDOWS := .cache/windows/wine

.PHONY: tools-windows test-windows test-windows-packages

tools-windows: $(WINDOWS)/.whole $(TOOLS_BIN)/windows/containerd.exe ## make a Debian with wine, and build containerd.exe, for test-windows
	@$(TOOLS)/debian.sh gcc-mingw-w64-x86-64-win32

$(WINDOWS)/.whole: test/windows/wine.sh
	@test/windows/wine.sh $(@D)

$(TOOLS_BIN)/windows/containerd.exe: $(TOOLS)/containerd/go.mod
	@echo "building containerd.exe, some 2 minutes the first time"
	@cd $(TOOLS)/containerd && GOOS=windows CGO_ENABLED=0 GOFLAGS= GOWORK=off go build -buildvcs=false -trimpath -ldflags '-s -w' \
		-o ../bin/windows/ github.com/containerd/containerd/v2/cmd/containerd
	@touch $@

test-windows: tools-windows tools-jaeger ## run cniscope.exe beside the real containerd.exe under wine (3 minutes, 7 the first time; root)
	go test ./test/windows -count=1 -timeout 30m -v

test-windows-packages: $(WINDOWS)/.whole ## run the packages' own tests as programs of Windows under wine, but for those in test/windows/not-under-wine.txt (root)
	test/windows/packages.sh $(WINDOWS) -count=1 $$(GOOS=windows go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./pkg/... \
		| grep -v -x -F -f <(sed -n 's|^\(pkg/[^\t]*\)\t.*|github.com/cniscope/cniscope/\1|p' test/windows/not-under-wine.txt))
