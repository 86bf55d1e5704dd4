package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// variable matches ${NAME} and ${NAME:-default}.
var variable = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// Expanded returns the configuration with its variables replaced by those of an
// environment.
func (s Server) Expanded(env []string) (Server, error) { return s.expanded(env) }

// expanded returns the configuration with its variables replaced by those of an
// environment. A variable that is not set and has no default is an error: a server that is
// given an empty token instead fails in ways that are hard to understand.
func (s Server) expanded(env []string) (Server, error) {
	if s.Literal {
		return s, nil
	}
	values := make(map[string]string, len(env))
	for _, v := range env {
		if name, value, ok := strings.Cut(v, "="); ok {
			values[name] = value
		}
	}
	var missing []string
	replace := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(found string) string {
			part := variable.FindStringSubmatch(found)
			value, set := values[part[1]]
			switch {
			case part[2] != "" && value == "":
				return part[3]
			case !set && !slices.Contains(missing, part[1]):
				missing = append(missing, part[1])
			}
			return value
		})
	}
	s.Command, s.Dir, s.URL = replace(s.Command), replace(s.Dir), replace(s.URL)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = replace(a)
	}
	s.OAuth.ClientID, s.ClientSecret, s.OAuth.Document = replace(s.OAuth.ClientID), replace(s.ClientSecret), replace(s.OAuth.Document)
	s.Env, s.Headers = replaceValues(s.Env, replace), replaceValues(s.Headers, replace)
	if len(missing) > 0 {
		return s, fmt.Errorf("the configuration uses ${%s}, which is not set; set it where abide is started, or give it a default: ${%s:-VALUE}", strings.Join(missing, "}, ${"), missing[0])
	}
	return s, nil
}

func replaceValues(values map[string]string, replace func(string) string) map[string]string {
	values = maps.Clone(values)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		values[name] = replace(values[name])
	}
	return values
}

// environment returns the environment of a program: that of the session, and what its
// configuration adds.
func (s Server) environment(env []string) []string {
	list := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, replaced := s.Env[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		list = append(list, name+"="+s.Env[name])
	}
	return list
}
