package glob

import (
	"errors"
	"fmt"
)

// maxAlternatives is the maximum number of alternatives of a pattern with braces.
const maxAlternatives = 1000

// expand converts a pattern with braces to patterns without braces.
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

// braces returns the first group in braces of a pattern: its position, its parts, and the
// position after it. There are no parts if there is no group.
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

// classLength returns the length of the class at the start of a pattern.
func classLength(p string) int {
	m := matcher{runes: true}
	n, _, err := m.items(p, func(rune, rune, func(rune) bool) {})
	if err != nil {
		return 1
	}
	return n
}
