# The probe on other kernels, emulated: docs/contributing/kernels.md. Which ones, test/kernels says. A
# kernel stays as it was fetched: `rm -r .cache/kernels` to have the newest of each suite.

KERNELS := $(shell sed -n 's/.* image: "\([^"]*\)".*/\1/p' test/kernels/kernels_test.go | sort -u)

.PHONY: test-kernels test-starts test-clocks test-ways debian-qemu

test-kernels: debian-qemu $(KERNELS:%=.cache/kernels/%/modules) ## boot the probe on Debian's kernels, on arm64 and under lockdown; count instructions; compare both ways (no KVM)
	go test ./test/kernels -count=1 -timeout 90m -v

STARTS ?= 2
WHOLE ?= 2
KERNEL ?= .*
test-starts: debian-qemu $(KERNELS:%=.cache/kernels/%/modules) ## start and stop a probe WHOLE (2) times, and attach and detach it STARTS (2) times, on each kernel (KERNEL=6.12: on that one) while others are in what it is attached to, every other one by SIGKILL: none hangs (no KVM)
	CNISCOPE_STARTS=$(STARTS) CNISCOPE_WHOLE=$(WHOLE) go test ./test/kernels -run '^TestProbesStartAndStopUnderLoad$$/^$(KERNEL)$$' -count=1 -timeout 10h -v

CLOCKS ?= all
test-clocks: debian-qemu $(KERNELS:%=.cache/kernels/%/modules) ## set the clock by an hour and by ten years, and suspend, while calls are under way, on five machines (CLOCKS=6.12: on that one; no KVM)
	CNISCOPE_CLOCKS="$(CLOCKS)" go test ./test/kernels -run '^TestCallsAcrossStepsOfTheClock$$' -count=1 -timeout 100m -v

ROUNDS ?= 1
test-ways: debian-qemu $(KERNELS:%=.cache/kernels/%/modules) ## have a probe of either way watch the same calls, ROUNDS (1) times, on 6.12 and the newest, and compare their spans; have programs be missed on 6.12, which is counted (no KVM)
	CNISCOPE_ROUNDS=$(ROUNDS) go test ./test/kernels -run '^(TestBothWaysGiveTheSameSpans|TestProgramsThatWereNotRunAreCounted)$$' -count=1 -timeout 2h -v

.cache/kernels/%/modules:
	@test/kernels/fetch.sh $(firstword $(subst -, ,$*)) $(lastword $(subst -, ,$*)) $(@D)

debian-qemu:
	@$(TOOLS)/debian.sh qemu-system-x86 qemu-system-arm
