package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// Digest returns a digest of what an event says. It is the same for the event of an agent
// as it is stored, and as the session that started the agent shows it.
func (e Event) Digest() string {
	_, data, _ := bytes.Cut(e.Bytes, []byte(`,"data":`))
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
