package glob

import (
	"errors"
	"fmt"
)

// maxAlternatives bounds what braces make of a pattern.
const maxAlternatives = 1000

// expand writes a pattern with braces as patterns without.
func expand(p string) ([]string, error) {
	open, parts, end, err := braces(p)
	if err != nil || parts == nil {
		return []string{p}, err
	}
	tails, err := expand(p[end:])
	if err != nil {
		return nil, err
	}
	var all []string
	for _, part := range parts {
		heads, err := expand(part)
		if err != nil {
			return nil, err
		}
		for _, head := range heads {
			for _, tail := range tails {
				all = append(all, p[:open]+head+tail)
			}
		}
		if len(all) > maxAlternatives {
			return nil, fmt.Errorf("more than %d alternatives; use several patterns", maxAlternatives)
		}
	}
	return all, nil
}

// braces finds the first group of a pattern: where it opens, its parts, and
// where it ends. There are no parts if there is no group.
func braces(p string) (open int, parts []string, end int, err error) {
	open = -1
	for i, depth, start := 0, 0, 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '[':
			i += classLength(p[i:]) - 1
		case '{':
			if depth++; depth == 1 {
				open, start = i, i+1
			}
		case ',':
			if depth == 1 {
				parts, start = append(parts, p[start:i]), i+1
			}
		case '}':
			if depth--; depth < 0 {
				return 0, nil, 0, errors.New("unopened alternate group; missing '{'")
			}
			if depth == 0 {
				return open, append(parts, p[start:i]), i + 1, nil
			}
		}
	}
	if open >= 0 {
		return 0, nil, 0, errors.New("unclosed alternate group; missing '}'")
	}
	return 0, nil, 0, nil
}

// classLength is how long the class at the start of a pattern is.
func classLength(p string) int {
	m := matcher{runes: true}
	n, _, err := m.items(p, func(rune, rune, func(rune) bool) {})
	if err != nil {
		return 1
	}
	return n
}
