package netlink

import (
	"fmt"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

type subsystem struct {
	protocol, prefix string
	messages         []string
}

// subsystems are those that plugins use (include/uapi/linux/netfilter/nfnetlink.h).
var subsystems = map[uint8]subsystem{
	unix.NFNL_SUBSYS_NFTABLES: {"nf_tables", "NFT_MSG_", []string{
		"NEWTABLE", "GETTABLE", "DELTABLE", "NEWCHAIN", "GETCHAIN", "DELCHAIN", "NEWRULE", "GETRULE", "DELRULE",
		"NEWSET", "GETSET", "DELSET", "NEWSETELEM", "GETSETELEM", "DELSETELEM", "NEWGEN", "GETGEN", "TRACE",
		"NEWOBJ", "GETOBJ", "DELOBJ", "GETOBJ_RESET", "NEWFLOWTABLE", "GETFLOWTABLE", "DELFLOWTABLE", "GETRULE_RESET",
		"DESTROYTABLE", "DESTROYCHAIN", "DESTROYRULE", "DESTROYSET", "DESTROYSETELEM", "DESTROYOBJ",
		"DESTROYFLOWTABLE", "GETSETELEM_RESET",
	}},
	unix.NFNL_SUBSYS_NFT_COMPAT: {"nft_compat", "NFNL_MSG_COMPAT_", []string{"GET"}},
	unix.NFNL_SUBSYS_IPSET: {"ipset", "IPSET_CMD_", []string{
		"NONE", "PROTOCOL", "CREATE", "DESTROY", "FLUSH", "RENAME", "SWAP", "LIST", "SAVE", "ADD", "DEL", "TEST",
		"HEADER", "TYPE", "GET_BYNAME", "GET_BYINDEX",
	}},
	unix.NFNL_SUBSYS_CTNETLINK: {"conntrack", "IPCTNL_MSG_CT_", []string{
		"NEW", "GET", "DELETE", "GET_CTRZERO", "GET_STATS_CPU", "GET_STATS", "GET_DYING", "GET_UNCONFIRMED",
	}},
	unix.NFNL_SUBSYS_CTNETLINK_EXP: {"conntrack", "IPCTNL_MSG_EXP_", []string{"NEW", "GET", "DELETE", "GET_STATS_CPU"}},
}

func subsystemOf(n uint8) subsystem {
	if s, known := subsystems[n]; known {
		return s
	}
	return subsystem{protocol: fmt.Sprintf("nfnetlink %d", n)}
}

func (s subsystem) meaning(name string) (event.Object, event.Verb) {
	switch s.protocol {
	case "ipset":
		return setMeaning(name)
	case "nft_compat":
		return event.ObjectExtension, event.VerbQuery
	case "conntrack":
		if strings.Contains(s.prefix, "EXP") {
			return event.ObjectExpectation, verbOf(name)
		}
		return event.ObjectConnection, verbOf(name)
	case "nf_tables":
		return ruleMeaning(name), verbOf(name)
	}
	return "", ""
}

func verbOf(name string) event.Verb {
	for prefix, verb := range verbs {
		if strings.HasPrefix(name, prefix) {
			return verb
		}
	}
	return ""
}

var verbs = map[string]event.Verb{
	"NEW": event.VerbAdd, "DEL": event.VerbDelete, "DESTROY": event.VerbDelete, "GET": event.VerbQuery,
}

func ruleMeaning(name string) event.Object {
	name = strings.TrimSuffix(name, "_RESET")
	for _, known := range []struct {
		suffix string
		object event.Object
	}{
		{"FLOWTABLE", event.ObjectFlowtable},
		{"TABLE", event.ObjectTable},
		{"CHAIN", event.ObjectChain},
		{"RULE", event.ObjectRule},
		{"SETELEM", event.ObjectElement},
		{"SET", event.ObjectSet},
		{"OBJ", event.ObjectStateful},
		{"GEN", event.ObjectRuleset},
	} {
		if strings.HasSuffix(name, known.suffix) {
			return known.object
		}
	}
	return ""
}

// Questions returns a subsystem's queries as bits by message number.
func Questions(subsystem uint8) (bits uint64) {
	s := subsystemOf(subsystem)
	for n, name := range s.messages {
		if _, verb := s.meaning(name); verb == event.VerbQuery && name != "" && n < 64 {
			bits |= 1 << n
		}
	}
	return bits
}

func setMeaning(name string) (event.Object, event.Verb) {
	if m, known := setMeanings[name]; known {
		return m.object, m.verb
	}
	return event.ObjectSet, event.VerbQuery
}

var setMeanings = map[string]struct {
	object event.Object
	verb   event.Verb
}{
	"":       {},
	"CREATE": {event.ObjectSet, event.VerbAdd}, "DESTROY": {event.ObjectSet, event.VerbDelete},
	"RENAME": {event.ObjectSet, event.VerbChange}, "SWAP": {event.ObjectSet, event.VerbChange},
	"ADD": {event.ObjectElement, event.VerbAdd}, "DEL": {event.ObjectElement, event.VerbDelete},
	"FLUSH": {event.ObjectElement, event.VerbDelete}, "TEST": {event.ObjectElement, event.VerbQuery},
}

// netfilter reads a struct nfgenmsg. The upper half of the message type is the subsystem.
func netfilter(q *event.Request, m netlink.Message) {
	s, n, name := subsystemOf(uint8(m.Header.Type>>8)), int(m.Header.Type&0xff), ""
	if n < len(s.messages) {
		name = s.messages[n]
		q.Name = s.prefix + name
	}
	q.Protocol = s.protocol
	q.Object, q.Verb = s.meaning(name)
	if q.Verb == event.VerbAdd {
		// In other messages these bits differ.
		q.Exclusive = m.Header.Flags&netlink.Excl != 0
		if q.Protocol == "nf_tables" && m.Header.Flags&netlink.Replace != 0 {
			q.Verb = event.VerbChange
		}
	}
	var head unix.Nfgenmsg
	rest, ok := fixed(m.Data, &head)
	if !ok {
		return
	}
	switch {
	case s.protocol == "ipset":
		q.Table = rest.text(ipsetAttrSetName, setNameSize)
	case s.protocol == "nf_tables" && q.Object != event.ObjectRuleset: // first attribute of every object
		q.Table = rest.text(unix.NFTA_TABLE_NAME, nftNameSize)
	}
	switch q.Object {
	case event.ObjectChain:
		q.Chain = rest.text(unix.NFTA_CHAIN_NAME, nftNameSize)
	case event.ObjectRule:
		q.Chain = rest.text(unix.NFTA_RULE_CHAIN, nftNameSize)
	}
}
