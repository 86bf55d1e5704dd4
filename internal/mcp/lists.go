package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/abide-run/abide/internal/event"
)

const (
	maxList  = 8 << 20        // maximum size of the lists that are kept of a server, in bytes
	listsAge = 24 * time.Hour // age from which on lists are read again although nothing is known to have changed
)

// lists are what a server offers.
type lists struct {
	Tools   []*sdk.Tool   `json:"tools"`
	Prompts []*sdk.Prompt `json:"prompts,omitempty"`
	Files   []stamp       `json:"files,omitempty"` // files of the program when it made the lists

	known *knownLists // what was made of them before in this process; nil if nothing is remembered
}

// UnmarshalJSON reads lists that were kept. Schemas stay texts: they are passed on as they are, and
// to take them apart would take longer than all the rest.
func (l *lists) UnmarshalJSON(text []byte) error {
	type tool struct {
		sdk.Tool
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	var kept struct {
		Tools   []*tool       `json:"tools"`
		Prompts []*sdk.Prompt `json:"prompts"`
		Files   []stamp       `json:"files"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		return err
	}
	*l = lists{Prompts: kept.Prompts, Files: kept.Files, Tools: make([]*sdk.Tool, 0, len(kept.Tools))}
	for _, t := range kept.Tools {
		if t == nil {
			continue
		}
		t.Tool.InputSchema, t.Tool.OutputSchema = t.InputSchema, nil
		l.Tools = append(l.Tools, &t.Tool)
	}
	return nil
}

// A stamp says which file there is at a path, so that it can be told whether there is another
// one now.
type stamp struct {
	Path    string    `json:"path"`
	Size    int64     `json:"size"`
	Changed time.Time `json:"changed"`
	ID      uint64    `json:"id"`
}

// cached returns the lists that a server with a fingerprint had when they were last read.
// They are old if the server has perhaps other ones by now.
func (o *Options) cached(fingerprint string) (l lists, old, ok bool) {
	if o.Lists == "" {
		return l, false, false
	}
	path := filepath.Join(o.Lists, fingerprint)
	file, ok := stampOf(path)
	if !ok {
		return l, false, false
	}
	if l, ok = o.Known.find(file); !ok {
		text, err := os.ReadFile(path)
		if err != nil {
			return l, false, false
		}
		if err := json.Unmarshal(text, &l); err != nil {
			l = lists{}
			return l, true, json.Unmarshal(text, &l.Tools) == nil // the form of an earlier version
		}
		o.Known.add(file, &l)
	}
	old = time.Since(file.Changed).Abs() > listsAge || slices.ContainsFunc(l.Files, func(f stamp) bool {
		now, found := stampOf(f.Path)
		return !found || !now.same(f)
	})
	return l, old, true
}

// keep keeps the lists of a server. Without them the server is asked.
func (o *Options) keep(fingerprint string, l lists) {
	text, err := json.Marshal(l)
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

// programFiles returns the program of a server, and those of its arguments that are files: a
// script, most often. What else belongs to it is not known.
func programFiles(s Server, in Surroundings) (list []stamp) {
	dir := s.dirIn(in)
	paths := []string{s.Command}
	if !strings.Contains(s.Command, "/") {
		paths = nil
		for _, v := range s.environment(in.Env) {
			if value, ok := strings.CutPrefix(v, "PATH="); ok {
				for _, folder := range filepath.SplitList(value) {
					paths = append(paths, filepath.Join(folder, s.Command))
				}
			}
		}
	}
	for i, path := range append(paths, s.Args...) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		f, ok := stampOf(path)
		if !ok || i < len(paths) && len(list) > 0 { // the first one in PATH is the program
			continue
		}
		list = append(list, f)
	}
	return list
}

// stampOf returns the stamp of the regular file at a path.
func stampOf(path string) (stamp, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return stamp{}, false
	}
	return stamp{path, info.Size(), info.ModTime(), fileID(info)}, true
}

// fileID returns a number that another file at the same path does not have.
func fileID(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

func (f stamp) same(g stamp) bool {
	return f.Path == g.Path && f.Size == g.Size && f.Changed.Equal(g.Changed) && f.ID == g.ID
}

// These bound what a server can offer.
const (
	maxTools   = 2000
	maxSchema  = 64 << 10
	maxListed  = 16 << 20 // bytes of all tools, or of all prompts
	listTime   = 30 * time.Second
	gatherTime = 250 * time.Millisecond
)

// list reads the lists of the server.
func (c *client) list(ctx context.Context, conn *sdk.ClientSession) error {
	ctx, cancel := context.WithTimeoutCause(ctx, listTime, fmt.Errorf("the server did not answer within %v", listTime))
	defer cancel()
	owner := Owner(c.set.in.Session)
	tools, more, err := listTools(ctx, conn)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if more {
		c.log.note(owner, "only the first %d tools are used: there can be %d, with %d bytes together", len(tools), maxTools, maxListed)
	}
	l := lists{Tools: tools}
	if l.Prompts, err = listPrompts(ctx, conn); err != nil {
		c.log.note(owner, "the prompts could not be listed: %v", err)
	}
	c.setLists(l)
	c.keepLists(l)
	return nil
}

// listTools reads the tools of a server. It reports whether there are more than are used.
func listTools(ctx context.Context, conn *sdk.ClientSession) (list []*sdk.Tool, more bool, err error) {
	if caps := conn.InitializeResult(); caps == nil || caps.Capabilities == nil || caps.Capabilities.Tools == nil {
		return nil, false, nil
	}
	size := 0
	for t, err := range conn.Tools(ctx, nil) {
		if err != nil {
			return list, false, err
		}
		if t == nil {
			continue
		}
		size += trimTool(t)
		if len(list) == maxTools || size > maxListed {
			return list, true, nil
		}
		list = append(list, t)
	}
	return list, false, nil
}

// trimTool takes from a tool what is never used: the schema of its results, and a schema of its
// arguments that is too large to be shown. It returns the size of the rest.
func trimTool(t *sdk.Tool) int {
	t.OutputSchema = nil
	schema, err := json.Marshal(t.InputSchema)
	if err != nil || len(schema) > maxSchema {
		t.InputSchema, schema = nil, nil
	}
	t.Description = t.Description[:min(len(t.Description), maxSchema)]
	return len(t.Name) + len(t.Title) + len(t.Description) + len(schema)
}

// listPrompts reads the prompts of a server.
func listPrompts(ctx context.Context, conn *sdk.ClientSession) (list []*sdk.Prompt, err error) {
	if caps := conn.InitializeResult(); caps == nil || caps.Capabilities == nil || caps.Capabilities.Prompts == nil {
		return nil, nil
	}
	size := 0
	for p, err := range conn.Prompts(ctx, nil) {
		if err != nil {
			return list, err
		}
		text, err := json.Marshal(p)
		size += len(text)
		if err != nil || len(list) == maxTools || size > maxListed {
			return list, err
		}
		list = append(list, p)
	}
	return list, nil
}

// keepLists keeps the lists of a program, so that it need not be started for them.
func (c *client) keepLists(l lists) {
	c.mu.Lock()
	fingerprint := c.fingerprint
	c.mu.Unlock()
	if fingerprint == "" {
		return
	}
	if config, err := c.config.expanded(c.set.in.Env); err == nil {
		l.Files = programFiles(config, c.set.in)
	}
	c.set.opts.keep(fingerprint, l)
}

// setLists takes in the lists of the server.
func (c *client) setLists(l lists) {
	offered := l.offered(c.config)
	c.mu.Lock()
	others := !reflect.DeepEqual(c.prompts, l.Prompts)
	c.tools, c.offered, c.prompts = l.Tools, offered, l.Prompts
	c.wakeLocked()
	c.mu.Unlock()
	c.set.events.Changed(c.config.Name, event.MCPToolsChanged)
	if others {
		c.set.events.Changed(c.config.Name, event.MCPPromptsChanged)
	}
}

// listLater reads the tools again when the server has stopped changing them for a moment.
func (c *client) listLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gather != nil {
		c.gather.Reset(gatherTime)
		return
	}
	c.gather = time.AfterFunc(gatherTime, func() {
		c.mu.Lock()
		conn := c.conn
		c.gather = nil
		c.mu.Unlock()
		if conn == nil {
			return
		}
		if err := c.list(c.set.ctx, conn); err != nil {
			c.log.note(Owner(c.set.in.Session), "the changed tools could not be listed: %v", err)
		}
	})
}

// tellResourcesLater tells that the list of resources has changed when the server has had a moment
// to change more of it.
func (c *client) tellResourcesLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.telling {
		return
	}
	c.telling = true
	time.AfterFunc(gatherTime, func() {
		c.mu.Lock()
		c.telling = false
		c.mu.Unlock()
		if c.set.ctx.Err() == nil {
			c.set.events.Changed(c.config.Name, event.MCPResourcesChanged)
		}
	})
}
