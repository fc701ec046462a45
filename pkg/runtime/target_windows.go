package runtime

import "github.com/containerd/containerd/v2/pkg/dialer"

// target returns a pipe as gRPC's target. Without "passthrough" gRPC would ask DNS for its name.
func target(pipe string) string { return "passthrough:///" + dialer.DialAddress(pipe) }
