package runtime

import "github.com/containerd/containerd/v2/pkg/dialer"

// target is what gRPC is told to connect to. Unless it is told to pass the name of a pipe on as it is, it asks
// DNS for it.
func target(pipe string) string { return "passthrough:///" + dialer.DialAddress(pipe) }
