package digest

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// listMost bounds a list; a node holds about 10,000 operations.
const listMost = 12_000

// List is bounded: a hostile node can send a million {}.
type List[T any] []T

// UnmarshalJSON rejects a long list before allocation.
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
