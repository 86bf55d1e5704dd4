// Package seal encrypts small values with a key that is in a file of its own, apart from
// the place where the values are stored.
//
//   - A sealed value can be opened only with the key that has sealed it, and only under
//     the labels that it was sealed under: a value that was changed, shortened or put in
//     the place of another one is refused.
//   - A sealed value names its key without giving it away, so that a missing or wrong key
//     can be told from a changed value.
//   - A key file appears whole or not at all, and is never overwritten: a key that is
//     lost cannot be made again.
//
// A value that was sealed earlier under the same labels can be put back: whoever can write
// where the values are stored can undo a change, and nothing here notices it.
package seal

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// An ID names a key. It is computed from the key, and says nothing about it.
type ID [8]byte

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// A sealed value is the version, the id of its key, the nonce, and the encrypted value
// with its tag. The nonce is random: XChaCha20 has room for so long a one that no two are
// ever the same.
const (
	version = 1
	prefix  = 1 + len(ID{})
)

// A key seals and opens values.
type key struct {
	id     ID
	aead   cipher.AEAD
	secret []byte
}

// newKey returns the key of 32 random bytes.
func newKey(secret []byte) (*key, error) {
	aead, err := chacha20poly1305.NewX(secret)
	if err != nil {
		return nil, err
	}
	k := &key{aead: aead, secret: secret}
	sum := sha256.Sum256(append([]byte("abide key id\x00"), secret...))
	copy(k.id[:], sum[:])
	return k, nil
}

func (k *key) seal(value []byte, labels []string) []byte {
	sealed := make([]byte, prefix+k.aead.NonceSize(), prefix+k.aead.NonceSize()+len(value)+k.aead.Overhead())
	sealed[0] = version
	copy(sealed[1:], k.id[:])
	nonce := sealed[prefix:]
	rand.Read(nonce) // it never fails
	return k.aead.Seal(sealed, nonce, value, bound(sealed[:prefix], labels))
}

func (k *key) open(sealed []byte, labels []string) ([]byte, error) {
	if len(sealed) < prefix+k.aead.NonceSize() {
		return nil, ErrChanged
	}
	nonce, rest := sealed[prefix:prefix+k.aead.NonceSize()], sealed[prefix+k.aead.NonceSize():]
	value, err := k.aead.Open([]byte{}, nonce, rest, bound(sealed[:prefix], labels))
	if err != nil {
		return nil, ErrChanged
	}
	return value, nil
}

// bound returns what a sealed value is bound to: its own head, and the labels, each with
// its length, so that no two lists of labels are the same bytes.
func bound(head []byte, labels []string) []byte {
	b := append([]byte("abide sealed value\x00"), head...)
	for _, label := range labels {
		b = binary.BigEndian.AppendUint64(b, uint64(len(label)))
		b = append(b, label...)
	}
	return b
}

// ErrChanged means that a sealed value was changed, or belongs in another place.
var ErrChanged = errors.New("it was changed, or put in the place of another one")

// KeyOf returns the id of the key that has sealed a value. It reports false for what is
// no sealed value.
func KeyOf(sealed []byte) (id ID, ok bool) {
	if len(sealed) < prefix || sealed[0] != version {
		return id, false
	}
	return ID(sealed[1:prefix]), true
}

// An UnknownKeyError means that the key of a sealed value is not in the key file.
type UnknownKeyError struct {
	Key  ID     // key that has sealed the value
	Path string // the key file
	Has  []ID   // keys that are in it; empty if there is no such file
}

func (e *UnknownKeyError) Error() string {
	if len(e.Has) == 0 {
		return fmt.Sprintf("it is sealed with key %s, and there is no key file %s: put the key file back", e.Key, e.Path)
	}
	return fmt.Sprintf("it is sealed with key %s, and the key file %s has key %s: add the lines of the right key file to it", e.Key, e.Path, e.Has[0])
}
