package digest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// listMost is how long a list of a node's answer may be: it remembers some 10,000 operations, which is its longest.
const listMost = 12_000

// List is a list of a node's answer. A node may have been taken over, and a million times {} is a small answer
// and a long list.
type List[T any] []T

// UnmarshalJSON refuses a list that is too long, before there is memory for it.
func (l *List[T]) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	switch begin, err := d.Token(); {
	case err != nil:
		return err
	case begin == nil: // null
		*l = nil
		return nil
	case begin != json.Delim('['):
		return fmt.Errorf("%v in place of a list", begin)
	}
	*l = List[T]{}
	for d.More() {
		if len(*l) >= listMost {
			return fmt.Errorf("a list of more than %s", Number(listMost))
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*l = append(*l, one)
	}
	return nil
}
