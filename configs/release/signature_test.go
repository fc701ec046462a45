package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// As an editor or a workflow leaves it.
func TestAKeyIsReadInEveryFormThatItIsGivenIn(t *testing.T) {
	_, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	locked, err := minisign.EncryptKey("p w", secret)
	if err != nil {
		t.Fatal(err)
	}
	open, err := secret.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "a key")
	for _, c := range []struct{ name, text, password string }{
		{"as it was made", string(open), ""},
		{"a password that it does not need", string(open), "p w"},
		{"last line not ended", strings.TrimRight(string(open), "\n"), ""},
		{"more lines", "\n" + string(open) + "\n\n", ""},
		{"lines of Windows", strings.ReplaceAll(string(open), "\n", "\r\n"), ""},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{c.text, file} {
			if key, err := signingKey(given, c.password); err != nil || key == nil || !key.Equal(secret) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	// A password lasts a second and needs a gigabyte.
	if key, err := signingKey(string(locked), "p w"); err != nil || !key.Equal(secret) {
		t.Error(err)
	}
	if _, err := signingKey(string(locked), "another"); err == nil || !strings.Contains(err.Error(), "is not the password") {
		t.Error(err)
	}
	if key, err := signingKey("", ""); key != nil || err != nil {
		t.Error("no key is no error, and no key")
	}
}
