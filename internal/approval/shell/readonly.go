package shell

import (
	"slices"
	"strings"

	"github.com/abide-run/abide/internal/lazyregexp"
)

// A reader is a row of the table of programs that only read: with the options that are
// listed, the program writes no file, runs no other program and changes nothing else.
//
// Options are listed as for getopt: a colon stands after those with a value, two colons
// after those whose value is optional. An option matches as a whole, and several short
// ones in a word match if each of them is listed. Abbreviations are not listed.
type reader struct {
	why      string // reason that the program is in the table, or that some options are not
	any      bool   // true if the program has no option at all that does more than read
	short    string
	long     string
	operands int                      // maximum number of words that are no options; 0 for any number
	accepts  func(args []string) bool // checks what options cannot say; nil if there is nothing to check
}

// noOperands is the value of reader.operands for programs that take none.
const noOperands = -1

// readers are the programs that only read. Programs that read the configuration of a
// project, package managers and whatever talks to a server are not among them.
var readers = map[string]reader{
	":":        {why: "does nothing", any: true},
	"[":        {why: "compares; -v and -R, which evaluate subscripts, are refused before", any: true},
	"basename": {why: "prints a part of its arguments", any: true},
	"cat":      {why: "prints files", any: true},
	"cksum":    {why: "prints sums", any: true},
	"cmp":      {why: "compares files", any: true},
	"column":   {why: "formats text", short: "ts:nxc:", long: "table separator:"},
	"comm":     {why: "compares files", any: true},
	"command":  {why: "command -v prints where a program is; other uses are taken apart before", accepts: func(args []string) bool { return len(args) == 2 && args[0] == "-v" }},
	"cut":      {why: "prints columns", any: true},
	"date":     {why: "prints the time; -s and an operand without + set it", short: "ud:r:R", long: "utc date: reference: rfc-3339: iso-8601::", accepts: formatsDate},
	"df":       {why: "prints free space", any: true},
	"diff":     {why: "compares files; -l runs pr", short: "abBcC:diNpqrsuU:wyW:x:", long: "brief unified:: recursive new-file ignore-all-space ignore-blank-lines exclude: side-by-side color:: text"},
	"dirname":  {why: "prints a part of its arguments", any: true},
	"du":       {why: "prints sizes", any: true},
	"echo":     {why: "prints its arguments", any: true},
	"exit":     {why: "ends the script", any: true},
	"expand":   {why: "formats text", any: true},
	"false":    {why: "does nothing", any: true},
	"file":     {why: "tells types; -C and -p write, -z and -Z run programs", short: "biLhkNnr0", long: "brief mime mime-type mime-encoding dereference no-dereference"},
	"find":     {why: "lists files, with the listed tests; -delete, -exec, -fprint and the like do more", accepts: listsFiles},
	"fold":     {why: "formats text", any: true},
	"grep":     {why: "searches, and has no option that writes or runs anything", any: true},
	"groups":   {why: "prints groups", any: true},
	"head":     {why: "prints the start of files", any: true},
	"id":       {why: "prints users", any: true},
	"join":     {why: "joins lines", any: true},
	"jq": {why: "prints parts of JSON; its language can neither write nor run anything, but read other files", short: "rcsenSMCajR", long: "raw-output compact-output slurp exit-status null-input sort-keys monochrome-output raw-input tab ascii-output join-output",
		accepts: func(operands []string) bool { return !slices.ContainsFunc(operands, importsFile) }},
	"ls":        {why: "lists folders", any: true},
	"md5sum":    {why: "prints sums", any: true},
	"nl":        {why: "numbers lines", any: true},
	"nproc":     {why: "prints a number", any: true},
	"od":        {why: "prints bytes", any: true},
	"paste":     {why: "joins lines", any: true},
	"printf":    {why: "prints its arguments; -v, which sets a variable, is refused before", any: true},
	"ps":        {why: "lists processes", any: true},
	"pwd":       {why: "prints the folder", any: true},
	"readlink":  {why: "prints where a link leads", any: true},
	"realpath":  {why: "prints where a path leads", any: true},
	"rev":       {why: "prints lines backwards", any: true},
	"rg":        {why: "searches; --pre and --hostname-bin run programs, -z runs decompressors", short: "nilcLFSsvwxoUP0uNHIe:g:t:T:A:B:C:m:d:j:M:r:", long: "files files-with-matches files-without-match count count-matches hidden no-ignore no-ignore-vcs glob: iglob: type: type-not: max-count: max-depth: context: after-context: before-context: json color: no-heading heading line-number no-line-number with-filename no-filename sort: stats multiline multiline-dotall word-regexp fixed-strings ignore-case smart-case case-sensitive invert-match only-matching pcre2 regexp: type-list no-config no-messages trim vimgrep"},
	"sed":       {why: "prints lines with -n and numbers only; its language can write and run", accepts: printsLines},
	"seq":       {why: "prints numbers", any: true},
	"sha1sum":   {why: "prints sums", any: true},
	"sha256sum": {why: "prints sums", any: true},
	"sha512sum": {why: "prints sums", any: true},
	"sleep":     {why: "waits", any: true},
	"sort":      {why: "sorts; -o and -T write, --compress-program runs a program", short: "bcCdfghik:mMnrRst:uVz", long: "numeric-sort reverse unique key: field-separator: human-numeric-sort version-sort ignore-case ignore-leading-blanks stable general-numeric-sort month-sort zero-terminated check"},
	"stat":      {why: "prints what the system knows of files", any: true},
	"strings": {why: "prints the texts in files; @ is a file with options", short: "afn:t:e:s:ow", long: "all bytes: radix: encoding: print-file-name",
		accepts: func(operands []string) bool {
			return !slices.ContainsFunc(operands, func(o string) bool { return strings.HasPrefix(o, "@") })
		}},
	"tac":    {why: "prints lines backwards", any: true},
	"tail":   {why: "prints the end of files", any: true},
	"test":   {why: "compares; -v and -R, which evaluate subscripts, are refused before", any: true},
	"tr":     {why: "replaces characters", any: true},
	"tree":   {why: "lists folders; -o writes, -R with -H too", short: "adfilpsghuDFqNQrtUvL:P:I:J", long: "dirsfirst noreport prune gitignore filelimit: du si inodes device"},
	"true":   {why: "does nothing", any: true},
	"type":   {why: "prints what a name is", any: true},
	"uname":  {why: "prints the name of the system", any: true},
	"uniq":   {why: "prints lines once; a second operand is written to", short: "cdiuf:s:w:z", long: "count repeated ignore-case unique skip-fields: skip-chars: check-chars:", operands: 1},
	"uptime": {why: "prints times", any: true},
	"wc":     {why: "counts", any: true},
	"which":  {why: "prints where a program is", any: true},
	"whoami": {why: "prints the user", any: true},
}

// builtins are the rows that the shell itself runs, without looking for a program, if no
// program stands in front of them.
var builtins = []string{":", "[", "command", "echo", "exit", "false", "printf", "pwd", "test", "true", "type"}

// diffOptions are the options of git for commits and differences that neither write nor
// run anything; --output, -O, --ext-diff and --textconv are not among them.
const (
	diffShort = "abCDMRU:pqrstuwWzS:G:n:L:i"
	diffLong  = "oneline stat:: numstat shortstat summary name-only name-status graph decorate:: no-decorate all branches:: tags:: remotes:: merges no-merges cached staged " +
		"format: pretty:: author: committer: since: until: after: before: grep: regexp-ignore-case reverse follow abbrev-commit no-abbrev-commit abbrev:: date: " +
		"first-parent word-diff:: color-words:: no-color color:: patch no-patch raw unified: max-count: skip: left-right cherry-pick cherry-mark " +
		"ignore-all-space ignore-space-change ignore-blank-lines ignore-space-at-eol no-ext-diff no-textconv find-renames:: find-copies:: no-renames " +
		"diff-filter: exit-code quiet check minimal patience histogram diff-algorithm: topo-order date-order author-date-order merge-base " +
		"no-prefix relative:: full-index binary text dirstat:: compact-summary no-index ignore-submodules count parents children boundary no-walk:: simplify-by-decoration"
)

// gitReaders are the subcommands of git that only read. Git can run programs that its
// configuration names; see [HoldStill] for what is done about it.
var gitReaders = map[string]reader{
	"--version":     {why: "prints the version", any: true},
	"blame":         {why: "shows who changed lines; --textconv is not listed", short: "L:wMCesltfcbp", long: "since: show-name show-number date: porcelain line-porcelain root no-progress show-stats abbrev::"},
	"branch":        {why: "lists branches; a name makes one", short: "arv", long: "list all remotes verbose show-current merged:: no-merged:: contains: no-contains: sort: format: points-at: no-color color::", operands: noOperands},
	"cat-file":      {why: "prints an object; --textconv and --filters run programs", short: "tspe"},
	"check-ignore":  {why: "tells which files are ignored", short: "vnqz", long: "verbose non-matching quiet no-index"},
	"config":        {why: "prints settings", accepts: printsSetting},
	"count-objects": {why: "counts objects", short: "vH", long: "verbose human-readable"},
	"describe":      {why: "names a commit", long: "tags always dirty:: abbrev: long all match: exclude: contains exact-match first-parent"},
	"diff":          {why: "compares", short: diffShort, long: diffLong},
	"for-each-ref":  {why: "lists references", long: "format: sort: count: points-at: merged:: no-merged:: contains::"},
	"grep":          {why: "searches; -O runs a pager, --textconv a program", short: "nilLcwvEFPGhHrpWoqIe:A:B:C:m:z", long: "cached untracked heading break count name-only files-with-matches line-number ignore-case word-regexp all-match and or not max-depth: extended-regexp fixed-strings perl-regexp show-function no-color column context: after-context: before-context:"},
	"log":           {why: "lists commits", short: diffShort, long: diffLong},
	"ls-files":      {why: "lists files", short: "cdmoisuztvx:X:", long: "cached deleted modified others ignored stage unmerged exclude-standard full-name error-unmatch eol exclude: exclude-from: directory no-empty-directory deduplicate"},
	"ls-tree":       {why: "lists the files of a commit", short: "rtdlz", long: "name-only name-status long full-tree full-name abbrev::"},
	"merge-base":    {why: "finds a commit", short: "a", long: "is-ancestor all fork-point independent octopus"},
	"name-rev":      {why: "names a commit", long: "name-only tags always all refs: no-undefined"},
	"reflog":        {why: "lists positions; expire and delete change them", short: "n:", long: "date: oneline all", operands: noOperands},
	"remote":        {why: "lists servers; other uses change them or talk to them", accepts: printsRemotes},
	"rev-list":      {why: "lists commits", short: diffShort, long: diffLong},
	"rev-parse":     {why: "prints names of commits and folders", short: "q", long: "show-toplevel abbrev-ref:: short:: git-dir verify is-inside-work-tree is-inside-git-dir is-bare-repository show-prefix show-cdup all symbolic-full-name quiet branches:: tags:: remotes:: git-common-dir absolute-git-dir show-superproject-working-tree git-path: is-shallow-repository"},
	"shortlog":      {why: "counts commits", short: "snec", long: "summary numbered email all since: until: no-merges group: author:"},
	"show":          {why: "shows commits and files", short: diffShort, long: diffLong},
	"stash": {why: "stash list and show only read", accepts: func(args []string) bool {
		return len(args) > 0 && (args[0] == "list" || args[0] == "show") && (reader{short: diffShort, long: diffLong}).covers(args[1:])
	}},
	"status": {why: "shows what changed", short: "sbvzu::", long: "short branch verbose porcelain:: untracked-files:: ignored:: long no-renames show-stash ahead-behind no-ahead-behind column:: no-column ignore-submodules"},
	"tag":    {why: "lists tags, with -l or without a name", accepts: listsTags},
	"worktree": {why: "worktree list only reads", accepts: func(args []string) bool {
		return slices.Equal(args, []string{"list"}) || slices.Equal(args, []string{"list", "--porcelain"})
	}},
}

// ReadOnly reports whether the command is in the table of commands that only read. The
// function trusted reports whether the program that a name stands for can be trusted to
// be the one that the table is about. It is asked about the programs in front, too.
func (r Run) ReadOnly(trusted func(name string) bool) bool {
	row, args, ok := r.row()
	if base(r.Words[0]) == "git" && slices.ContainsFunc(args, ShowsSignature) {
		return false
	}
	isOther := func(name string) bool { return !trusted(name) }
	return ok && row.covers(args) && !slices.ContainsFunc(r.programs(), isOther)
}

// row returns the row of the table for a command, and the arguments that it has to cover.
func (r Run) row() (row reader, args []string, ok bool) {
	name := base(r.Words[0])
	if name != "git" {
		row, ok = readers[name]
		return row, r.Words[1:], ok
	}
	if len(r.Words) == 1 {
		return row, nil, false
	}
	row, ok = gitReaders[r.Words[1]]
	return row, r.Words[2:], ok
}

// covers reports whether all arguments are listed.
func (row reader) covers(args []string) bool {
	if row.any {
		return true
	}
	if slices.Contains(args, Unknown) {
		return false
	}
	if row.accepts != nil && row.short == "" {
		return row.accepts(args)
	}
	operands, ok := row.split(args)
	return ok && (row.operands == 0 || len(operands) <= max(row.operands, 0)) && (row.accepts == nil || row.accepts(operands))
}

// split returns the operands of a program. It reports false if an option is not listed. A
// word that begins with a dash is never taken for anything but an option: if the table
// were wrong about which options have a value, it could be one after all.
func (row reader) split(args []string) (operands []string, ok bool) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			rest := args[i+1:]
			return append(operands, rest...), !slices.ContainsFunc(rest, beginsWithDash)
		case a == "-" || !strings.HasPrefix(a, "-"):
			operands = append(operands, a)
			continue
		}
		takesNext, ok := row.lists(a)
		if !ok {
			return nil, false
		}
		if !takesNext {
			continue
		}
		if i++; i == len(args) || beginsWithDash(args[i]) {
			return nil, false
		}
	}
	return operands, true
}

func beginsWithDash(w string) bool { return strings.HasPrefix(w, "-") }

// lists reports whether an option, or each of several short ones, is listed, and whether
// its value is the next word.
func (row reader) lists(a string) (takesNext, ok bool) {
	if name, isLong := strings.CutPrefix(a, "--"); isLong {
		name, _, joined := strings.Cut(name, "=")
		names := strings.Fields(row.long)
		switch {
		case slices.Contains(names, name+":"):
			return !joined, true
		case slices.Contains(names, name+"::"):
			return false, true
		}
		return false, !joined && slices.Contains(names, name)
	}
	if strings.Trim(a[1:], "0123456789") == "" { // a number of lines
		return false, strings.Contains(row.short, "n:") || strings.Contains(row.short, "U:")
	}
	for i := 1; i < len(a); i++ {
		at := strings.IndexByte(row.short, a[i])
		if at < 0 || a[i] == ':' {
			return false, false
		}
		switch after := row.short[at+1:]; {
		case strings.HasPrefix(after, "::"):
			return false, true
		case strings.HasPrefix(after, ":"):
			return i == len(a)-1, true
		}
	}
	return false, true
}

// formatsDate reports whether the operands of date are formats.
func formatsDate(operands []string) bool {
	return !slices.ContainsFunc(operands, func(o string) bool { return !strings.HasPrefix(o, "+") })
}

// printsSetting reports whether git config prints a setting.
func printsSetting(args []string) bool {
	return len(args) == 2 && (args[0] == "--get" || args[0] == "--get-all") && !strings.HasPrefix(args[1], "-") ||
		len(args) == 1 && (args[0] == "--list" || args[0] == "-l")
}

// printsRemotes reports whether git remote prints what it knows.
func printsRemotes(args []string) bool {
	return len(args) == 0 || slices.Equal(args, []string{"-v"}) || len(args) == 2 && args[0] == "get-url" && !strings.HasPrefix(args[1], "-")
}

// listsTags reports whether git tag lists tags.
func listsTags(args []string) bool {
	if len(args) > 0 && (args[0] == "-l" || args[0] == "--list") {
		return (reader{short: "n::i", long: "sort: contains: merged:: points-at: format:"}).covers(args[1:])
	}
	return len(args) == 0
}

// ShowsSignature reports whether a word is, or has, a format or an order with which git
// verifies signatures, by running the program that its configuration names. A format of
// which only the name is known may be one: the configuration says what it is.
func ShowsSignature(word string) bool {
	if signature.MatchString(word) {
		return true
	}
	named := namedFormat.FindStringSubmatch(word)
	isListed := func(format string) bool { return strings.HasPrefix(format, strings.ToLower(named[1])) } // git takes abbreviations
	return named != nil && !strings.HasPrefix(named[1], "format:") && !strings.HasPrefix(named[1], "tformat:") && !slices.ContainsFunc(formats, isListed)
}

// signature matches a placeholder, which may have a sign that asks for a blank or a new line
// before its text, a field, and an order, which may be that of versions.
var signature = lazyregexp.New(`%[-+ ]?G|\(\*?signature|^(--[a-z-]+=)?-?(v:|version:)?\*?signature(:|$)`)

var namedFormat = lazyregexp.New(`^--(?:pretty|format)=([^%]+)$`)

// formats are the formats of commits and of archives that git itself knows by a name.
var formats = strings.Fields("email full fuller mboxrd medium oneline raw reference short tar tar.gz tgz zip")

// printsLines reports whether sed is used to print a part of a file.
func printsLines(args []string) bool {
	if len(args) < 2 || args[0] != "-n" {
		return false
	}
	lines, ok := strings.CutSuffix(args[1], "p")
	return ok && strings.Trim(lines, "0123456789,$ ") == "" && !slices.ContainsFunc(args[2:], func(a string) bool { return strings.HasPrefix(a, "-") })
}

// The tests and actions of find that only look, without and with a value.
const (
	findFlags = "! ( ) , -H -L -P -a -and -daystart -depth -empty -executable -false -follow -ls -mount -not -o -or -print -print0 -prune -quit -readable -true -writable -xdev"
	findTests = "-amin -atime -cmin -cnewer -ctime -gid -group -iname -inum -ipath -iregex -iwholename -links -maxdepth -mindepth -mmin -mtime -name " +
		"-newer -path -perm -printf -regex -regextype -samefile -size -type -uid -user -wholename -xtype"
)

// listsFiles reports whether find only lists files.
func listsFiles(args []string) bool {
	flags, tests := strings.Fields(findFlags), strings.Fields(findTests)
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains(tests, a):
			i++
		case !slices.Contains(flags, a) && (strings.HasPrefix(a, "-") || a == ""):
			return false
		}
	}
	return true
}
