package config

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is text that is used and never shown: whatever prints, logs or encodes
// it gets "[redacted]". Reveal returns the text.
type Secret struct{ text string }

// NewSecret keeps text from being shown.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text itself, for the one place that sends it.
func (s Secret) Reveal() string { return s.text }

// String implements fmt.Stringer.
func (Secret) String() string { return redacted }

// Format implements fmt.Formatter: no verb, %#v and %x among them, shows more than String.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, for every encoder, also that of JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
