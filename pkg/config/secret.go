package config

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is text that prints, logs and encodes as "[redacted]". Reveal returns it.
type Secret struct{ text string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.text }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter for every verb, including %#v and %x.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, which JSON also uses.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
