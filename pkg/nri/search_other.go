//go:build !linux

package nri

// Search finds no plugins here.
type Search struct{}

// NewSearch ignores the socket.
func NewSearch(string) Search { return Search{} }

// List returns nothing.
func (Search) List(int) ([]Other, bool) { return nil, false }
