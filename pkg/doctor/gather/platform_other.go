//go:build !linux

package gather

import (
	"context"
	"io/fs"
	"os"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
)

var errPlatform = fact.ErrElsewhere

func reach(string, time.Duration) (int, error)         { return 0, nil }
func runnable(fs.FileInfo) bool                        { return true }
func faultOf(view, string) *event.Program              { return nil }
func Chains(context.Context) ([]fact.Chain, error)     { return nil, errPlatform }
func loadBalancing(context.Context) (fact.LB, error)   { return fact.LB{}, errPlatform }
func ownNetwork(context.Context) (fact.Network, error) { return fact.Network{}, errPlatform }

func forwarding(context.Context) (fact.Forwarding, error)       { return fact.Forwarding{}, errPlatform }
func nriSocket(context.Context, fact.Options) (fact.NRI, error) { return fact.NRI{}, errPlatform }
func kernelFeatures(context.Context) (fact.Kernel, error)       { return fact.Kernel{}, errPlatform }

func clockState(context.Context) (fact.Clock, error)              { return fact.Clock{}, errPlatform }
func processes(context.Context, []string) ([]fact.Process, error) { return nil, errPlatform }
func heldLocks([]string) ([]fact.Lock, error)                     { return nil, errPlatform }
func viewOf(int, bool) view                                       { return view{sure: true} }
func askAgents(context.Context, *fact.Facts, string, []candidate) ([]fact.Agent, error) {
	return nil, errPlatform
}

func things([]string) (map[string]bool, error) { return map[string]bool{}, errPlatform }

func staleNeighbors(view, *procfs.Residents, []leak.Attachment) map[string][]event.Obstacle {
	return map[string][]event.Obstacle{}
}
func reused([]leak.Attachment) []fact.Gone        { return nil }
func bearers(map[string]bool) error               { return errPlatform }
func born(string) time.Time                       { return time.Time{} }
func bootTime() time.Time                         { return time.Time{} }
func unitOf(int) string                           { return "" }
func attached(view, *event.Found) error           { return errPlatform }
func dockerFolders(int, *fact.CRI)                {}
func mountedSettings([]*cri.Mount) []fact.Setting { return nil }

func openLog(path string) (*os.File, error)    { return os.Open(path) }
func openFolder(path string) (*os.File, error) { return os.Open(path) }
