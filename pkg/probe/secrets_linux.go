package probe

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
)

// A plugin's error message is worth having, and may repeat what the plugin was told: a
// token that was refused, a user that is unknown. What the configuration holds is kept out
// of it, but for what is known to be harmless.

const (
	// secretMin is the length from which on a value may be a secret: shorter ones are words.
	secretMin = 6
	// secretsMax bounds how many are looked for.
	secretsMax = 256
)

// repeatable are the keys of a configuration (CNI specification and its reference plugins)
// whose values may be repeated.
func repeatable(key string) bool {
	switch key {
	case "name", "type", "cniVersion", "bridge", "master", "device", "mode", "dataDir", "interface", "sandbox", "ifname":
		return true
	}
	return false
}

// secretsOf lists the values of a configuration that must not be repeated, as far as they
// are looked for. The longest is to be replaced first, since one may be part of another.
func secretsOf(configuration []byte) (secrets []string) {
	var all any
	if json.Unmarshal(configuration, &all) != nil {
		return nil
	}
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				if k != "prevResult" { // which is what plugins answered
					walk(k, inner)
				}
			}
		case []any:
			for _, inner := range v {
				walk(key, inner)
			}
		case string:
			if len(v) >= secretMin && len(secrets) < secretsMax && !repeatable(key) && !isAddress(v) {
				secrets = append(secrets, text.Clean(v, text.Bound))
			}
		}
	}
	walk("", all)
	return secrets
}

func longestFirst(secrets []string) []string {
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	return secrets
}

// without replaces each of the secrets in a message.
func without(message string, secrets []string) string {
	for _, secret := range secrets {
		message = strings.ReplaceAll(message, secret, "…")
	}
	return message
}
