//go:build !linux

package doctor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

var errPlatform = errors.New("this cannot be told on this platform")

func reach(string, time.Duration) error                      { return nil }
func runnable(fs.FileInfo) bool                              { return true }
func chains(context.Context) ([]Chain, error)                { return nil, errPlatform }
func loadBalancing(context.Context) (LB, error)              { return LB{}, errPlatform }
func ownNetwork(context.Context) (Network, error)            { return Network{}, errPlatform }
func nriSocket(context.Context, Options) (NRI, error)        { return NRI{}, errPlatform }
func kernelFeatures(context.Context) (Kernel, error)         { return Kernel{}, errPlatform }
func clockState(context.Context) (Clock, error)              { return Clock{}, errPlatform }
func processes(context.Context, []string) ([]Process, error) { return nil, errPlatform }
func heldLocks([]string) ([]Lock, error)                     { return nil, errPlatform }
func mountedSettings([]mount) []Setting                      { return nil }

func openLog(path string) (*os.File, error) { return os.Open(path) }
