# The programs of the release before beside those of this tree.

.PHONY: test-upgrade

# The last commit whose chart, options and programs were of 0.2.0.
BEFORE     := bdc531d
BEFORE_BIN := .cache/before/$(BEFORE)
$(BEFORE_BIN)/kubectl-cniscope:
	@echo "building the programs of 0.2.0 ($(BEFORE)), about 3 minutes the first time"
	@rm -rf $(@D) && mkdir -p $(@D)/tree && git archive $(BEFORE) | tar x -C $(@D)/tree
	@cd $(@D)/tree && go build -buildvcs=false -trimpath -ldflags '-s -w' -o bin/ ./plugin/... && mv bin/* ..
	@rm -r $(@D)/tree

test-upgrade: tools $(BEFORE_BIN)/kubectl-cniscope ## 0.2.0, upgraded, rolled back and upgraded on one state; kubectl plugin, sidecar and node of two versions: each pair answers, or says which side to upgrade (root)
	CNISCOPE_BEFORE=$(CURDIR)/$(BEFORE_BIN) test/own.sh go test ./test/upgrade -count=1 -timeout 20m -v
