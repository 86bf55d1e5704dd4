package rpc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/abide-run/abide/internal/api"
	"github.com/abide-run/abide/internal/approval/places"
	"github.com/abide-run/abide/internal/project/instructions"
)

// These methods show what projects tell agents.
var _ = register(map[string]method{
	api.InstructionSources:  on((*conn).instructionSources),
	api.InstructionDiscover: on((*conn).discoverInstructions),
	api.InstructionPaths:    on((*conn).instructionPaths),
})

// instructionSources are the files that a session's model is told of.
func (c *conn) instructionSources(ctx context.Context, p api.SessionParams) (api.InstructionsResult, error) {
	result := api.InstructionsResult{Sources: []api.Instructions{}}
	st, err := c.server.host.Status(ctx, p.SessionID)
	if err != nil || st.Config.SkipInstructions {
		return result, noSession(p.SessionID, err)
	}
	from, err := c.server.host.Work.Files(p.SessionID)
	if err != nil {
		return result, err
	}
	files, err := c.server.opts.Instructions.Files(ctx, from, st.Config.WorkingDirectory, st.Config.InstructionDirs...)
	if err != nil {
		c.server.log.Warn("some instructions could not be read", "session", p.SessionID, "err", err)
	}
	for _, f := range files {
		result.Sources = append(result.Sources, source(st.Config.WorkingDirectory, f))
	}
	return result, nil
}

// source is a file as clients are told of it, of who works in a folder.
func source(dir string, f instructions.File) api.Instructions {
	s := api.Instructions{ID: f.Path, Label: filepath.Base(f.Path), Location: "user", Type: "repo", SourcePath: f.Path, Content: f.Content}
	at := places.Locate(dir)
	if places.Within(at.Key, f.Path) {
		s.Location = "repository"
		if at.Kind == "dir" {
			s.Location = "working-directory"
		}
		if rel, err := filepath.Rel(at.Key, f.Path); err == nil {
			s.SourcePath, s.Label = filepath.ToSlash(rel), filepath.ToSlash(rel)
		}
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.Dir(f.Path) == home {
		s.Type = "home"
	}
	if strings.HasSuffix(f.Path, ".instructions.md") {
		s.Type = "vscode"
	}
	return s
}

// projects are the folders that a request names, or the client's own.
func (c *conn) projects(p api.DiscoverParams) ([]string, error) {
	for i, dir := range p.ProjectPaths {
		if !filepath.IsAbs(dir) {
			return nil, errBadParams{fmt.Errorf("projectPaths[%d]: want an absolute path", i)}
		}
	}
	if len(p.ProjectPaths) > 0 {
		return p.ProjectPaths, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.defaults.Cwd == "" {
		return nil, nil
	}
	return []string{c.defaults.Cwd}, nil
}

func (c *conn) discoverInstructions(ctx context.Context, p api.DiscoverParams) (api.InstructionsResult, error) {
	result := api.InstructionsResult{Sources: []api.Instructions{}}
	dirs, err := c.projects(p)
	if err != nil {
		return result, err
	}
	from, err := c.server.host.Work.Files("")
	if err != nil {
		return result, err
	}
	for _, dir := range dirs {
		files, err := c.server.opts.Instructions.Files(ctx, from, dir)
		if err != nil {
			c.server.log.Warn("some instructions could not be read", "folder", dir, "err", err)
		}
		for _, f := range files {
			s := source(dir, f)
			s.ProjectPath = dir
			result.Sources = append(result.Sources, s)
		}
	}
	return result, nil
}

// instructionPaths are the folders where files with instructions count.
func (c *conn) instructionPaths(_ context.Context, p api.DiscoverParams) (api.PlacesResult, error) {
	result := api.PlacesResult{Paths: []api.DiscoveryPath{}}
	dirs, err := c.projects(p)
	for _, dir := range dirs {
		at := places.Locate(dir)
		location := "repository"
		if at.Kind == "dir" {
			location = "working-directory"
		}
		result.Paths = append(result.Paths, api.DiscoveryPath{Path: dir, Kind: "directory", Location: location, ProjectPath: dir, Preferred: dir == at.Key})
		for up := filepath.Dir(dir); at.Kind == "repo" && dir != at.Key && places.Within(at.Key, up); up = filepath.Dir(up) {
			result.Paths = append(result.Paths, api.DiscoveryPath{Path: up, Kind: "directory", Location: location, ProjectPath: dir, Preferred: up == at.Key})
		}
	}
	return result, err
}
