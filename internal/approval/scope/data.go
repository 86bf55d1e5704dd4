package scope

// Data is a scope as data, for a workspace on another machine. What is protected is not
// part of it: a caller judges that by the path that the workspace returns.
type Data struct {
	Allow []Allowance
	Deny  []Denial
}

// An Allowance is a path without links that may be used, with everything below it.
type Allowance struct {
	Path string
	Mode Mode
}

// A Denial is a file or folder that may not be used.
type Denial struct {
	Names    []string // paths of the target: as it was written, and without links
	Mode     Mode
	Dev, Ino uint64 // identity of the target when the scope was created; zero if it did not exist
}

// Data returns the rules of a scope.
func (s *Scope) Data() Data {
	var d Data
	for _, a := range s.allow {
		d.Allow = append(d.Allow, Allowance{a.path, a.mode})
	}
	for _, n := range s.deny {
		d.Deny = append(d.Deny, Denial{n.names, n.mode, n.identity.dev, n.identity.ino})
	}
	return d
}

// Scope returns the scope with these rules, in which nothing is protected. A denial
// without a name is about nothing.
func (d Data) Scope() *Scope {
	s := new(Scope)
	for _, a := range d.Allow {
		s.allow = append(s.allow, allowance{a.Path, a.Mode})
	}
	for _, n := range d.Deny {
		if len(n.Names) > 0 {
			s.deny = append(s.deny, denial{n.Names, n.Mode, identity{n.Dev, n.Ino}})
		}
	}
	return s
}

// Protection returns why a path without links is protected from being used in a mode;
// empty if it is not, or if a person has allowed it.
func (s *Scope) Protection(path string, mode Mode) string { return s.protection(path, mode) }
