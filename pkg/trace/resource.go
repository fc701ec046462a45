package trace

import (
	"cmp"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/cniscope/cniscope/pkg/event"
)

// Node describes the node; its attributes are the resource of every trace.
type Node struct {
	// Name is the Kubernetes node's name, Cluster the cluster's (may be empty).
	Name, Cluster string
	// Host, OS and Arch are the machine's, in the words of Go's runtime package.
	Host, OS, Arch string
	// Instance is unique to one cniscope; Version is cniscope's.
	Instance, Version string
	// Attributes are added by the operator; they cannot replace those above.
	Attributes map[string]string
}

// Resource returns the node's attributes. They are set explicitly: containerd passes its own
// OTEL_SERVICE_NAME on to its children, of which cniscope may be one.
func (n Node) Resource() []attribute.KeyValue {
	kvs := nonZero(
		semconv.ServiceName("cniscope"),
		semconv.ServiceVersion(n.Version),
		semconv.ServiceInstanceID(n.Instance),
		semconv.K8SNodeName(n.Name),
		semconv.K8SClusterName(n.Cluster),
		semconv.HostName(n.Host),
		semconv.OSTypeKey.String(n.OS),
		semconv.HostArchKey.String(n.Arch),
	)
	taken := map[string]bool{}
	for _, kv := range kvs {
		taken[string(kv.Key)] = true
	}
	for _, key := range slices.Sorted(maps.Keys(n.Attributes)) {
		if !taken[key] {
			kvs = append(kvs, attribute.String(key, n.Attributes[key]))
		}
	}
	return kvs
}

// runtimeOf returns the attributes of the container runtime; none if it is unknown.
func runtimeOf(r event.Runtime) []attribute.KeyValue {
	if r == (event.Runtime{}) {
		return nil
	}
	return []attribute.KeyValue{
		semconv.ContainerRuntimeName(cmp.Or(r.Name, "unknown")),
		semconv.ContainerRuntimeVersion(r.Version),
	}
}
