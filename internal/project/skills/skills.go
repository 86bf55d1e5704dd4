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
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/event"
	"github.com/abide-run/abide/internal/project/file"
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
var projectDirs = []string{".github/skills", ".agents/skills"}

// Folders returns the folders of a project that may contain skills. They need not exist.
func Folders(project string) []string {
	var list []string
	for _, dir := range projectDirs {
		list = append(list, filepath.Join(project, filepath.FromSlash(dir)))
	}
	return list
}

// Find returns the skills in folders, and those of a project unless it is empty.
func Find(folders []string, project string) ([]event.Skill, error) {
	var found []event.Skill
	var errs []error
	look := func(root, dir, source string) {
		more, err := findIn(file.Root(root), dir, source)
		for _, s := range more {
			if len(found) < maxSkills && !slices.ContainsFunc(found, func(o event.Skill) bool { return o.Name == s.Name }) {
				found = append(found, s)
			}
		}
		errs = append(errs, err)
	}
	for _, dir := range folders {
		look(dir, dir, Custom)
	}
	if project != "" {
		for _, dir := range Folders(project) {
			look(project, dir, Project)
		}
	}
	return found, errors.Join(errs...)
}

// For returns the skills of a session that works in a folder.
func For(rules event.SkillRules, dir string) ([]event.Skill, error) {
	if !rules.Discover {
		dir = ""
	}
	return Find(rules.Directories, dir)
}

// Disk finds and reads skills on disk, for sessions.
type Disk struct{}

// Find calls For.
func (Disk) Find(rules event.SkillRules, dir string) ([]event.Skill, error) { return For(rules, dir) }

// Body calls Body.
func (Disk) Body(s event.Skill) (string, error) { return Body(s) }

// findIn returns the skills in one folder, sorted by the names of their folders. The folder
// may be a skill itself.
func findIn(root, dir, source string) ([]event.Skill, error) {
	if s, err := describe(root, filepath.Join(dir, File), source); err == nil {
		return []event.Skill{s}, nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	var found []event.Skill
	var errs []error
	for _, e := range entries {
		s, err := describe(root, filepath.Join(dir, e.Name(), File), source)
		switch {
		case err == nil:
			found = append(found, s)
		case !errors.Is(err, fs.ErrNotExist) && (e.IsDir() || e.Type() == fs.ModeSymlink):
			errs = append(errs, err)
		}
	}
	return found, errors.Join(errs...)
}

// describe reads the name and the description of a skill.
func describe(root, path, source string) (event.Skill, error) {
	text, err := read(root, path)
	if err != nil {
		return event.Skill{}, err
	}
	head, _ := Parse(text)
	s := event.Skill{Name: head["name"], Description: head["description"], Path: path, Source: source}
	if s.Name == "" {
		s.Name = filepath.Base(filepath.Dir(path))
	}
	if strings.ContainsAny(s.Name, "\"<>\n") {
		return event.Skill{}, fmt.Errorf("skill %s: its name %q makes no sense", path, s.Name)
	}
	return s, nil
}

// Body returns the content of a skill's file without its head.
func Body(s event.Skill) (string, error) {
	text, err := read(rootOf(s), s.Path)
	_, body := Parse(text)
	return body, err
}

// rootOf returns the folder that links of a skill must not leave.
func rootOf(s event.Skill) string {
	for _, dir := range projectDirs {
		if at := strings.LastIndex(s.Path, filepath.FromSlash("/"+dir+"/")); at > 0 && s.Source == Project {
			return file.Root(s.Path[:at])
		}
	}
	return file.Root(filepath.Dir(filepath.Dir(s.Path)))
}

func read(root, path string) (string, error) {
	b, more, err := file.Read(root, path, maxFile)
	if more {
		err = fmt.Errorf("it has more than %d KiB", maxFile>>10)
	}
	if err != nil {
		return "", fmt.Errorf("skill %s: %w", path, err)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD"), nil
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
