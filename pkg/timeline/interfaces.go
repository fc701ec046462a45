package timeline

import "fmt"

// interfaces are the names of network interfaces, by namespace and index, as far as the
// requests of an operation tell them.
type interfaces map[string]string

func (n interfaces) key(namespace string, index uint32) string {
	return fmt.Sprint(namespace, " ", index)
}

func (n interfaces) name(namespace string, index uint32) string {
	if index == 0 {
		return ""
	}
	return n[n.key(namespace, index)]
}

// learn takes what a request says of an interface that has an index and a name.
func (n interfaces) learn(r *Request) {
	i := r.Interface
	if r.Name != "RTM_NEWLINK" || i.Index == 0 || r.Errno() != "" {
		return
	}
	if i.Name != "" {
		n[n.key(r.NetNS.Key, i.Index)] = i.Name
	}
	// It keeps its index where it is moved to, unless that is taken there.
	if name := n.name(r.NetNS.Key, i.Index); name != "" && i.NetNS.Key != "" {
		if to := n.key(i.NetNS.Key, i.Index); n[to] == "" {
			n[to] = name
		}
	}
}

// nameInterfaces says of each request which interface it is about, by name. Requests
// mostly name an index: what an index is called may be said only later.
func (op *Operation) nameInterfaces() {
	names := interfaces{}
	requests := func(f func(*Request)) {
		op.insides(func(_ *Image, in *Inside) {
			for i := range in.Requests {
				f(&in.Requests[i])
			}
		})
	}
	requests(func(r *Request) {
		names.learn(r)
		if r.On = r.Interface.Name; r.On == "" {
			r.On = names.name(r.NetNS.Key, r.Interface.Index)
		}
	})
	if len(names) == 0 {
		return
	}
	requests(func(r *Request) {
		if r.On == "" {
			r.On = names.name(r.NetNS.Key, r.Interface.Index)
		}
		r.Under = names.name(r.NetNS.Key, r.Interface.Master)
	})
	op.insides(func(_ *Image, in *Inside) {
		for _, d := range in.Detections {
			d.On = names.name(d.NetNS.Key, d.Index)
		}
	})
}

// insides calls f for every image of which something is known inside.
func (op *Operation) insides(f func(*Image, *Inside)) {
	for _, call := range op.Calls {
		for _, run := range call.Runs {
			run.Walk(func(im *Image) {
				if im.Inside != nil {
					f(im, im.Inside)
				}
			})
		}
	}
}

// unanswered gives an end to the detections that a process did not see the end of.
func (op *Operation) unanswered() {
	op.insides(func(im *Image, in *Inside) {
		for _, d := range in.Detections {
			if d.open() {
				d.End = max(d.End, im.End)
			}
		}
	})
}
