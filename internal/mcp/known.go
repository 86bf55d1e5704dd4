package mcp

import (
	"encoding/json"
	"sync"

	"github.com/abide-run/abide/internal/event"
)

// Known are the lists of servers that were read in this process: the next session with the same
// servers reads none of them. Its zero value is usable.
type Known struct {
	mu   sync.Mutex
	all  map[string]*knownLists // by the path of the file
	size int64                  // bytes of their files
}

// knownLists are the lists in a file.
type knownLists struct {
	file  stamp
	lists lists

	mu      sync.Mutex
	offered map[string][]event.MCPTool // tools as sessions know them, by the configuration of the server
}

// maxKnown is how many bytes of files are remembered. Then all are forgotten.
const maxKnown = 32 << 20

// find returns the lists in a file, if it is still the same one.
func (k *Known) find(file stamp) (lists, bool) {
	if k == nil {
		return lists{}, false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.all[file.Path]
	if known == nil || !known.file.same(file) {
		return lists{}, false
	}
	l := known.lists
	l.known = known
	return l, true
}

// add remembers the lists in a file.
func (k *Known) add(file stamp, l *lists) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if before := k.all[file.Path]; before != nil {
		k.size -= before.file.Size
	}
	if k.size += file.Size; k.all == nil || k.size > maxKnown {
		k.all, k.size = make(map[string]*knownLists), file.Size
	}
	l.known = &knownLists{file: file, lists: *l}
	k.all[file.Path] = l.known
}

// offered returns the tools that a server offers, as sessions know them, without their names for
// models. They must not be changed.
func (l *lists) offered(s Server) []event.MCPTool {
	if l.known == nil {
		return toolsOf(s, l.Tools)
	}
	text, err := json.Marshal([]any{s.Name, s.Tools, s.Repeatable})
	if err != nil { // texts
		panic(err)
	}
	l.known.mu.Lock()
	defer l.known.mu.Unlock()
	tools, ok := l.known.offered[string(text)]
	if !ok {
		tools = toolsOf(s, l.Tools)
		if l.known.offered == nil || len(l.known.offered) > 16 {
			l.known.offered = make(map[string][]event.MCPTool)
		}
		l.known.offered[string(text)] = tools
	}
	return tools
}
