# Container runtimes other than containerd, and other places for containerd (docs/platforms.md).

CRIO_TAGS := containers_image_openpgp exclude_graphdriver_btrfs exclude_graphdriver_devicemapper

.PHONY: tools-crio test-crio test-nerdctl test-nested

$(eval $(call part,crio,about 4 minutes,0,-tags "$(CRIO_TAGS)",crio/))
$(eval $(call part,nerdctl,about 4 minutes,0,,))

# CRI-O pins the namespaces of a pod by a small program in C, which lies in its module.
$(TOOLS_BIN)/crio/pinns: $(built/crio)
	@gcc -std=c99 -Os -static -s -o $@ $$(cd $(TOOLS)/crio && GOWORK=off go list -m -f '{{.Dir}}' github.com/cri-o/cri-o)/pinns/src/*.c

tools-crio: debian-run $(built/crio) $(TOOLS_BIN)/crio/pinns ## build CRI-O, for test-crio
	@$(TOOLS)/debian.sh conmon

# What the stories on the rig say must be true of CRI-O, too: these are the ones that go through
# delegates, commands, waits, held locks, answers and agents.
CRIO_STORIES := ^(TestWhatAPluginAnswers|TestTheSlowCommandBehindTheSocket)$$
CRIO_STORIES := $(CRIO_STORIES)|^TestReportsAreJudged$$/^(host-local.s_lock|xtables_lock|IPv6_DAD|a_computation|nobody_listens)$$

test-crio: tools tools-crio ## run cniscope beside CRI-O: traces, waits, agents, doctor, install, status (root)
	$(TESTS) -count=1 -timeout 10m ./test/runtimes -run TestCRIO
	CNISCOPE_TEST_RUNTIME=crio $(TESTS) -count=1 -timeout 10m ./test/scenarios -run '$(CRIO_STORIES)'

# In namespaces of its own, for containerd and what it mounts are in the same one as cniscope.
test-nerdctl: tools $(built/nerdctl) ## run cniscope beside nerdctl, whose networks are set up by an OCI hook: traces, a held lock, doctor (root)
	unshare --pid --fork --mount-proc --kill-child $(TESTS) -count=1 -timeout 10m ./test/runtimes -run TestNerdctl

# A PID namespace of its own, as a kind node has: the kernel counts processes otherwise than /proc.
test-nested: tools ## the kernel probe and the stories of agents and locks, all in a PID namespace of their own (root)
	unshare --pid --fork --mount-proc --kill-child $(TESTS) -count=1 -timeout 15m ./pkg/probe/kernel ./pkg/probe
	unshare --pid --fork --mount-proc --kill-child $(TESTS) -count=1 -timeout 10m ./test/scenarios -run '^($(CRIO_STORIES))$$'
