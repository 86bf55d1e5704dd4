package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxList is the maximum size of a list that is kept, in bytes.
const maxList = 8 << 20

// cached returns the tools that a server with a fingerprint had when they were last listed.
func (o *Options) cached(fingerprint string) ([]*sdk.Tool, bool) {
	if o.Lists == "" {
		return nil, false
	}
	text, err := os.ReadFile(filepath.Join(o.Lists, fingerprint))
	if err != nil {
		return nil, false
	}
	var tools []*sdk.Tool
	if err := json.Unmarshal(text, &tools); err != nil {
		return nil, false
	}
	return tools, true
}

// keep keeps the tools of a server. Without them the server is asked.
func (o *Options) keep(fingerprint string, tools []*sdk.Tool) {
	text, err := json.Marshal(tools)
	if o.Lists == "" || err != nil || len(text) > maxList || os.MkdirAll(o.Lists, 0o700) != nil {
		return
	}
	path := filepath.Join(o.Lists, fingerprint)
	f, err := os.CreateTemp(o.Lists, "new.*")
	if err != nil {
		return
	}
	_, err = f.Write(text)
	if closed := f.Close(); err != nil || closed != nil || os.Rename(f.Name(), path) != nil {
		_ = os.Remove(f.Name()) // one that stays is in nobody's way
	}
}
