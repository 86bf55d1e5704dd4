// Package skills finds skills: folders with a file SKILL.md that tells an agent how to do
// something.
//
//   - The file of a skill begins with its name and description between two lines of
//     three dashes. The model is only told these, and the rest when it asks for it.
//   - If several skills have the same name, the first that is found is used.
//   - The number and size of files are limited, and no link is followed out of the
//     project or the named folder. Invalid skills are left out and reported.
package skills

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/workspace"
)

// File is the name of a skill's file.
const File = "SKILL.md"

// The limits of reading.
const (
	maxFile   = 256 << 10 // bytes of a file
	maxSkills = 500       // number of skills
)

// The sources of skills, as event.Skill contains them.
const (
	Custom  = "custom"  // a folder that a client named
	Project = "project" // a folder of the project
)

// projectDirs are the folders of a project that contain skills.
var projectDirs = []string{".github/skills", ".agents/skills", ".claude/skills"}

// Folders returns the folders of a project that may contain skills. They need not exist.
func Folders(project string) []string {
	var list []string
	for _, dir := range projectDirs {
		list = append(list, filepath.Join(project, filepath.FromSlash(dir)))
	}
	return list
}

// Find returns the skills in folders of a workspace, and those of a project unless it is
// empty.
func Find(ctx context.Context, from workspace.Projects, folders []string, project string) ([]event.Skill, error) {
	var places []place
	for _, dir := range folders {
		places = append(places, place{dir, dir, Custom})
	}
	if project != "" {
		for _, dir := range Folders(project) {
			places = append(places, place{dir, project, Project})
		}
	}
	files, err := collect(ctx, from, places)
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	var found []event.Skill
	var errs []error
	for i, p := range places {
		more, err := p.skills(files[i])
		for _, s := range more {
			if len(found) < maxSkills && !slices.ContainsFunc(found, func(o event.Skill) bool { return o.Name == s.Name }) {
				found = append(found, s)
			}
		}
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// For returns the skills of a session that works in a folder.
func For(ctx context.Context, from workspace.Projects, rules event.SkillRules, dir string) ([]event.Skill, error) {
	if !rules.Discover {
		dir = ""
	}
	return Find(ctx, from, rules.Directories, dir)
}

// Library finds and reads skills, for sessions.
type Library struct{}

// Find calls For.
func (Library) Find(ctx context.Context, from workspace.Projects, rules event.SkillRules, dir string) ([]event.Skill, error) {
	return For(ctx, from, rules, dir)
}

// Body calls Body.
func (Library) Body(ctx context.Context, from workspace.Projects, s event.Skill) (string, error) {
	return Body(ctx, from, s)
}

// A place is a folder that may contain skills.
type place struct {
	dir    string
	root   string // folder whose project links must not leave
	source string
}

// maxHead is the number of bytes in which the head of a file usually ends.
const maxHead = 4 << 10

// collect returns the beginnings of the files in each of the places, and all of those
// whose head is longer.
func collect(ctx context.Context, from workspace.Projects, places []place) ([][]workspace.Collected, error) {
	var which []workspace.Selection
	for _, p := range places { // a folder may be a skill itself
		within := []string{p.root}
		which = append(which, workspace.Selection{Dir: p.dir, Names: []string{File}, Within: within, Most: maxHead},
			workspace.Selection{Dir: p.dir, Pattern: "*/" + File, Within: within, Most: maxHead})
	}
	found, err := from.Collect(ctx, which...)
	if err != nil {
		return nil, err
	}
	files := make([][]workspace.Collected, len(places))
	for i := range places {
		files[i] = append(found[2*i], found[2*i+1]...)
	}
	return files, readLong(ctx, from, places, files)
}

// readLong reads the files whose head has not ended yet.
func readLong(ctx context.Context, from workspace.Projects, places []place, files [][]workspace.Collected) error {
	var which []workspace.Selection
	var long []*workspace.Collected
	for i, p := range places {
		for j := range files[i] {
			if f := &files[i][j]; f.Err == nil && f.Size <= maxFile && isHeadCut(*f) {
				long = append(long, f)
				which = append(which, workspace.Selection{Dir: filepath.Dir(f.Path), Names: []string{File}, Within: []string{p.root}, Most: maxFile})
			}
		}
	}
	if len(which) == 0 {
		return nil
	}
	found, err := from.Collect(ctx, which...)
	for i, f := range long {
		if err == nil && len(found[i]) == 1 { // else it was removed meanwhile
			*f = found[i][0]
		}
	}
	return err
}

// isHeadCut reports whether the head of a file ends after what was read of it.
func isHeadCut(f workspace.Collected) bool {
	head, _ := Parse(linesOf(f))
	return f.Cut() && head == nil && strings.HasPrefix(string(f.Content), "---")
}

// linesOf returns the text of a file without a line that was cut.
func linesOf(f workspace.Collected) string {
	text := string(f.Content)
	if f.Cut() {
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// skills returns the skills of a place, sorted by the names of their folders.
func (p place) skills(files []workspace.Collected) ([]event.Skill, error) {
	var found []event.Skill
	var errs []error
	for _, f := range files {
		s, err := p.describe(f)
		own := f.Path == filepath.Join(p.dir, File)
		switch {
		case err == nil && own:
			return []event.Skill{s}, nil
		case err == nil:
			found = append(found, s)
		case !own:
			errs = append(errs, err)
		}
	}
	return found, errors.Join(errs...)
}

// describe reads the name and the description of a skill.
func (p place) describe(f workspace.Collected) (event.Skill, error) {
	if err := check(f); err != nil {
		return event.Skill{}, err
	}
	head, _ := Parse(linesOf(f))
	s := event.Skill{Name: head["name"], Description: head["description"], Path: f.Path, Source: p.source}
	if s.Name == "" {
		s.Name = filepath.Base(filepath.Dir(f.Path))
	}
	if strings.ContainsAny(s.Name, "\"<>\n") {
		return event.Skill{}, fmt.Errorf("skill %s: its name %q makes no sense", f.Path, s.Name)
	}
	return s, nil
}

// check returns the error of a file that is no skill.
func check(f workspace.Collected) error {
	err := f.Err
	if err == nil && f.Size > maxFile {
		err = fmt.Errorf("it has more than %d KiB", maxFile>>10)
	}
	if err != nil {
		return fmt.Errorf("skill %s: %w", f.Path, err)
	}
	return nil
}

// Body returns the content of a skill's file without its head.
func Body(ctx context.Context, from workspace.Projects, s event.Skill) (string, error) {
	dir, name := filepath.Split(s.Path)
	found, err := from.Collect(ctx, workspace.Selection{Dir: dir, Names: []string{name}, Within: []string{rootOf(s)}, Most: maxFile})
	switch {
	case err != nil:
		return "", fmt.Errorf("skill %s: %w", s.Path, err)
	case len(found[0]) == 0:
		return "", fmt.Errorf("skill %s: %w", s.Path, syscall.ENOENT)
	}
	if err := check(found[0][0]); err != nil {
		return "", err
	}
	_, body := Parse(linesOf(found[0][0]))
	return body, nil
}

// rootOf returns the folder whose project links of a skill must not leave.
func rootOf(s event.Skill) string {
	for _, dir := range projectDirs {
		if at := strings.LastIndex(s.Path, filepath.FromSlash("/"+dir+"/")); at > 0 && s.Source == Project {
			return s.Path[:at]
		}
	}
	return filepath.Dir(filepath.Dir(s.Path))
}

// Parse splits a skill's file into the fields of its head and its body. A file without a
// head is all body.
func Parse(text string) (head map[string]string, body string) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, found := strings.CutPrefix(text, "---\n")
	if !found {
		return nil, strings.TrimSpace(text)
	}
	lines, body, found := strings.Cut(rest, "\n---")
	if after, whole := strings.CutPrefix(body, "\n"); whole || body == "" {
		body = after
	} else {
		found = false // the line is longer than three dashes
	}
	if !found {
		return nil, strings.TrimSpace(text)
	}
	return fields(lines), strings.TrimSpace(body)
}

// fields parses lines such as "name: value". Indented lines continue the value before
// them.
func fields(text string) map[string]string {
	head := make(map[string]string)
	last := ""
	for line := range strings.SplitSeq(text, "\n") {
		if trimmed := strings.TrimSpace(line); last != "" && line != trimmed && trimmed != "" && (line[0] == ' ' || line[0] == '\t') {
			head[last] = strings.TrimSpace(head[last] + " " + trimmed)
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if last = ""; ok && name != "" && !strings.ContainsAny(name, " \t#") {
			last = name
			head[name] = scalar(strings.TrimSpace(value))
		}
	}
	return head
}

// scalar returns a value without its quotes, or "" if the value follows in indented
// lines.
func scalar(value string) string {
	switch value {
	case ">", "|", ">-", "|-", ">+", "|+":
		return ""
	}
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}
