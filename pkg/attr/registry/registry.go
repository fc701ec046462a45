// Package registry reads cniscope.yaml.
package registry

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed cniscope.yaml
var file []byte

// Model is the registry with resolved references.
type Model struct {
	// Attributes are cniscope's, in file order; Foreign are OpenTelemetry's, by first use.
	Attributes, Foreign []*Attribute
	Spans               []*Span
}

// Attribute is one attribute.
type Attribute struct {
	Key       string   `yaml:"key"`
	Type      string   `yaml:"type"` // empty for OpenTelemetry's
	Brief     string   `yaml:"brief"`
	Kinds     []string `yaml:"-"`
	Stability string   `yaml:"stability"`
}

// Span is one kind of span.
type Span struct {
	Type string `yaml:"type"`
	Kind string `yaml:"kind"` // internal or client
	Name struct {
		Note string `yaml:"note"`
	} `yaml:"name"`
	Brief      string `yaml:"brief"`
	References []ref  `yaml:"attributes"`
	Stability  string `yaml:"stability"`
}

// Value returns the span's cniscope.kind.
func (s *Span) Value() string { return strings.TrimPrefix(s.Type, "cniscope.") }

const resource = "resource"

type ref struct {
	Key         string `yaml:"ref"`
	Group       string `yaml:"ref_group"`
	Brief       string `yaml:"brief"`
	Requirement string `yaml:"requirement_level"`
}

// Load fails for an unknown key, group or reference.
func Load() (*Model, error) {
	var r struct {
		Format     string       `yaml:"file_format"`
		Attributes []*Attribute `yaml:"attributes"`
		Groups     []struct {
			ID         string `yaml:"id"`
			Visibility string `yaml:"visibility"`
			References []ref  `yaml:"attributes"`
		} `yaml:"attribute_groups"`
		Spans    []*Span `yaml:"spans"`
		Entities []struct {
			Type        string `yaml:"type"`
			Brief       string `yaml:"brief"`
			Stability   string `yaml:"stability"`
			Description []ref  `yaml:"description"`
		} `yaml:"entities"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(file))
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil {
		return nil, err
	}
	m := &Model{Attributes: r.Attributes, Spans: r.Spans}
	groups := map[string][]ref{}
	for _, g := range r.Groups {
		groups[g.ID] = g.References
	}
	for _, s := range m.Spans {
		for _, r := range s.References {
			all := []ref{r}
			if r.Group != "" {
				if all = groups[r.Group]; all == nil {
					return nil, fmt.Errorf("%s: no group %q", s.Type, r.Group)
				}
			}
			for _, r := range all {
				if err := m.use(s, r); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, e := range r.Entities {
		for _, r := range e.Description {
			if err := m.use(&Span{Type: resource}, r); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (m *Model) use(s *Span, r ref) error {
	a := m.Attribute(r.Key)
	if a == nil {
		if strings.HasPrefix(r.Key, "cniscope.") || strings.HasPrefix(r.Key, "cni.") {
			return fmt.Errorf("%s: %q is not defined", s.Type, r.Key)
		}
		a = &Attribute{Key: r.Key}
		m.Foreign = append(m.Foreign, a)
	}
	if slices.Contains(a.Kinds, s.Value()) {
		return fmt.Errorf("%s has %q twice", s.Type, r.Key)
	}
	a.Kinds = append(a.Kinds, s.Value())
	if r.Brief != "" {
		a.Brief = r.Brief
	}
	return nil
}

// Attribute returns a key's attribute or template, or nil.
func (m *Model) Attribute(key string) *Attribute {
	for _, a := range slices.Concat(m.Attributes, m.Foreign) {
		template := strings.HasPrefix(a.Type, "template[") || a.Key == "k8s.pod.label"
		if key == a.Key || template && strings.HasPrefix(key, a.Key+".") {
			return a
		}
	}
	return nil
}
