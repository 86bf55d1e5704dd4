package skill

import (
	"fmt"
	"strings"

	"github.com/abide-run/abide/internal/event"
)

// The limits of the list of skills, which is in every request: a project may have hundreds of
// skills, and each of them a description of any length.
const (
	mostList        = 24 << 10 // bytes of the list
	mostDescription = 1024     // bytes of a description
)

// writeList writes the skills with their descriptions, and returns the names of those that it
// has written. If they are too long for the list, all descriptions are shortened alike; skills
// that have no place even then are only counted, and can still be asked for by their names.
func writeList(w *strings.Builder, list []event.Skill) (names []string) {
	most := mostDescription
	for most > 0 && size(list, most) > mostList {
		most /= 2
	}
	left := mostList
	for _, k := range list {
		line := entry(k, most)
		if len(line) > left {
			continue
		}
		left -= len(line)
		w.WriteString(line)
		names = append(names, k.Name)
	}
	if n := len(list) - len(names); n > 0 {
		fmt.Fprintf(w, "\n(%d more skills have no place here)", n)
	}
	return names
}

// size returns the size of a list with descriptions of at most most bytes.
func size(list []event.Skill, most int) (n int) {
	for _, k := range list {
		n += len(entry(k, most))
	}
	return n
}

// entry is the line of a skill.
func entry(k event.Skill, most int) string {
	if most == 0 {
		return "\n- " + k.Name
	}
	return "\n- " + k.Name + ": " + shorten(k.Description, most)
}

// shorten returns the beginning of a text that is longer than most bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
