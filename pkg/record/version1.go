package record

import (
	"encoding/json"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
)

// From before the first release.

func decode1(raw []byte, body any) error {
	switch b := body.(type) {
	case *event.Request:
		return request1(raw, b)
	case *event.Accept:
		old := struct {
			*event.Accept
			Agent *event.Actor `json:"server"`
		}{b, &b.Agent}
		return json.Unmarshal(raw, &old)
	case *event.Agent:
		err := json.Unmarshal(raw, body)
		b.State = state1(b.Channel)
		return err
	case *event.Above:
		old := struct {
			*event.Above
			SandboxID *string `json:"container_id"`
		}{b, &b.SandboxID}
		return json.Unmarshal(raw, &old)
	}
	return json.Unmarshal(raw, body)
}

// state1 derives the state from the first thread's kernel function: signals and freezers stop whole processes.
func state1(channel string) event.AgentState {
	switch channel {
	case "do_signal_stop":
		return event.AgentStopped
	case "do_freezer_trap":
		return event.AgentFrozen
	}
	return ""
}

func request1(raw []byte, r *event.Request) error {
	old := struct {
		*event.Request
		Query bool `json:"query"`
	}{Request: r}
	if err := json.Unmarshal(raw, &old); err != nil {
		return err
	}
	r.Object, r.Verb = meaning1(r)
	if old.Query {
		r.Verb = event.VerbQuery
	}
	return nil
}

var objects1 = map[string]event.Object{
	"LINK": event.ObjectLink, "LINKPROP": event.ObjectLink, "ADDR": event.ObjectAddress, "ROUTE": event.ObjectRoute,
	"NEIGH": event.ObjectNeighbor, "RULE": event.ObjectRule, "QDISC": event.ObjectQdisc, "TCLASS": event.ObjectClass,
	"TFILTER": event.ObjectFilter, "ACTION": event.ObjectAction, "MDB": event.ObjectMDB, "NSID": event.ObjectNetNS,
	"NEXTHOP": event.ObjectNextHop, "NEXTHOPBUCKET": event.ObjectNextHop, "VLAN": event.ObjectVLAN,
	"TABLE": event.ObjectTable, "CHAIN": event.ObjectChain, "SET": event.ObjectSet, "SETELEM": event.ObjectElement,
	"OBJ": event.ObjectStateful, "GEN": event.ObjectRuleset, "FLOWTABLE": event.ObjectFlowtable,
}

func meaning1(r *event.Request) (event.Object, event.Verb) {
	switch r.Protocol {
	case "rtnetlink", "nf_tables":
		return named1(r)
	case "iptables", "ip6tables":
		return event.ObjectTable, event.VerbChange
	case "nft_compat":
		return event.ObjectExtension, ""
	}
	object := map[string]event.Object{
		"ioctl": event.ObjectLink, "ipset": event.ObjectSet, "conntrack": event.ObjectConnection,
	}[r.Protocol]
	switch {
	case object == "":
		return "", ""
	case strings.HasSuffix(r.Name, "_CMD_ADD"), strings.HasSuffix(r.Name, "_CMD_DEL"):
		object = event.ObjectElement
	}
	switch {
	case strings.Contains(r.Name, "DEL"), strings.HasSuffix(r.Name, "_DESTROY"):
		return object, event.VerbDelete
	case strings.Contains(r.Name, "ADD"), strings.HasSuffix(r.Name, "_CREATE"), strings.HasSuffix(r.Name, "_NEW"):
		return object, event.VerbAdd
	}
	return object, event.VerbChange
}

func named1(r *event.Request) (event.Object, event.Verb) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.Name, "RTM_"), "NFT_MSG_")
	for prefix, verb := range map[string]event.Verb{
		"NEW": event.VerbAdd, "SET": event.VerbChange, "DEL": event.VerbDelete, "DESTROY": event.VerbDelete,
		"GET": event.VerbQuery,
	} {
		rest, has := strings.CutPrefix(strings.TrimSuffix(name, "_RESET"), prefix)
		object := objects1[rest]
		switch {
		case !has || object == "":
			continue
		case object == event.ObjectLink && verb == event.VerbAdd && !r.Exclusive && r.Interface.Kind == "":
			verb = event.VerbChange
		}
		return object, verb
	}
	return "", ""
}
