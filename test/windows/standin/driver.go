//go:build windows

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/containernetworking/cni/libcni"
)

// driver runs ADD and, a while later, DEL, as a container runtime does whose sandboxes live.
//
//	driver -bin FOLDER -conf FILE [-when FILE] [-alive DURATION] NAMESPACE NAME...
func driver(args []string) error {
	flags := flag.NewFlagSet("driver", flag.ContinueOnError)
	bin := flags.String("bin", "", "the folder of the plugins")
	conf := flags.String("conf", "", "a file with the list of plugins")
	when := flags.String("when", "", "prefix of files FILE-NAME: each starts a pod, because cniscope looks for probe.callers only every 5 s")
	alive := flags.Duration("alive", 0, "how long a pod lives")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() < 2 {
		return errors.New("name a namespace and pods")
	}
	list, err := libcni.ConfListFromFile(*conf)
	if err != nil {
		return err
	}
	network := libcni.NewCNIConfigWithCacheDir([]string{*bin}, os.TempDir(), nil)
	var all sync.WaitGroup
	for _, name := range flags.Args()[1:] {
		all.Go(func() {
			await(*when, name)
			live(network, list, flags.Arg(0), name, *alive)
		})
	}
	all.Wait()
	return nil
}

func await(when, name string) {
	for when != "" {
		if _, err := os.Stat(when + "-" + name); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func live(network *libcni.CNIConfig, list *libcni.NetworkConfigList, namespace, name string, alive time.Duration) {
	id := make([]byte, 32)
	_, _ = rand.Read(id)
	rt := &libcni.RuntimeConf{
		ContainerID: hex.EncodeToString(id), NetNS: "786877ce-0bdc-4ff7-a58a-" + hex.EncodeToString(id[:6]), IfName: "eth0",
		Args: [][2]string{
			{"IgnoreUnknown", "1"},
			{"K8S_POD_NAMESPACE", namespace},
			{"K8S_POD_NAME", name},
			{"K8S_POD_INFRA_CONTAINER_ID", hex.EncodeToString(id)},
			{"K8S_POD_UID", "uid-of-" + name},
		},
	}
	_, err := network.AddNetworkList(context.Background(), list, rt)
	fmt.Println(name, rt.ContainerID, "ADD", err)
	time.Sleep(alive)
	fmt.Println(name, rt.ContainerID, "DEL", network.DelNetworkList(context.Background(), list, rt))
}
