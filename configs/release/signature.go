package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
)

// publicKey exists from the first signed release on.
const publicKey = "configs/release/minisign.pub"

// signature signs the checksums, with the commit's time, so the same key gives the same bytes.
func signature(_ context.Context, r *release) error {
	if r.key == nil {
		fmt.Println("      NOT SIGNED: no key was given. MINISIGN_KEY=FILE (and MINISIGN_PASSWORD) signs checksums.txt")
		return nil
	}
	sums, err := os.ReadFile(filepath.Join(r.Out, "checksums.txt"))
	if err != nil {
		return err
	}
	trusted := fmt.Sprintf("timestamp:%d\tfile:checksums.txt\tcniscope %s", r.Time.Unix(), r.Version)
	message := minisign.NewReader(bytes.NewReader(sums))
	if _, err := io.Copy(io.Discard, message); err != nil {
		return err
	}
	signed := message.SignWithComments(*r.key, trusted, fmt.Sprintf("signature of cniscope %s", r.Version))
	if err := r.create("checksums.txt.minisig", func(w io.Writer) error {
		_,
			err := w.Write(signed)
		return err
	}); err != nil {
		return err
	}
	fmt.Printf("      by the key %X\n", r.key.ID())
	return nil
}

// signingKey reads a minisign secret key from a file or, in a workflow, from its text; nil if none is given.
func signingKey(given, password string) (*minisign.PrivateKey, error) {
	if given == "" {
		return nil, nil
	}
	text := []byte(given)
	if !strings.HasPrefix(strings.TrimSpace(given), "untrusted comment:") {
		var err error
		if text, err = os.ReadFile(given); err != nil {
			return nil, fmt.Errorf("MINISIGN_KEY is neither a secret key nor the file of one: %w", errors.Unwrap(err))
		}
	}
	text = bytes.TrimSpace(text)
	var key minisign.PrivateKey
	if !minisign.IsEncrypted(text) {
		if err := key.UnmarshalText(text); err != nil {
			return nil, fmt.Errorf("MINISIGN_KEY is no secret key of minisign: %w", err)
		}
		return &key, nil
	}
	if password == "" {
		return nil, errors.New("the key has a password: give it as MINISIGN_PASSWORD")
	}
	key, err := minisign.DecryptKey(password, text)
	if err != nil {
		return nil, errors.New("MINISIGN_PASSWORD is not the password of the key MINISIGN_KEY")
	}
	return &key, nil
}

// readKey rejects, before the long build, a key that users cannot verify.
func (r *release) readKey(draft bool) error {
	key, err := signingKey(os.Getenv("MINISIGN_KEY"), os.Getenv("MINISIGN_PASSWORD"))
	if err != nil || key == nil {
		return err
	}
	r.key = key
	known, err := minisign.PublicKeyFromFile(filepath.Join(r.Root, publicKey))
	if errors.Is(err, os.ErrNotExist) && draft {
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not there, so users could not verify the signature; commit what `minisign -R -s "+
			"cniscope.key -p %s` writes", publicKey, publicKey)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", publicKey, err)
	}
	if public, ok := key.Public().(minisign.PublicKey); !ok || !known.Equal(public) {
		return fmt.Errorf("MINISIGN_KEY is not the secret half of %s, which users verify with", publicKey)
	}
	return nil
}
