package difftest

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ordinary are command lines that agents run, in the spellings that they use.
var ordinary = []string{
	"ls", "ls -la", "ls -la sub", "git status", "git status --short", "git log --oneline -5", "git diff HEAD~1",
	"git log --format='%h %s' -n 3", "git log --since=\"2 weeks ago\" --author='A B'", "git show stash@{0}", "git diff HEAD@{1}",
	"git show HEAD:main.go", "git diff main...HEAD -- 'a b'", "git log --grep=\"fix: it\" --all", "git commit -m 'it is done'",
	"git commit -m \"say \\\"hello\\\"\"", "git commit -m 'it'\\''s done'", "git diff --stat && git log -1", "cat README.md",
	"cat README.md main.go | head -5", "cat 'a b'", "cat a\\ b", "rg -n 'func .*Parse' -g '*.go'", "rg \"a|b\" --type go",
	"grep -rn \"x y\" . | head -20", "grep -E '^(a|b)$' a", "grep -c '' README.md", "go test ./...", "go test -run 'TestA|TestB' -count=1 ./...",
	"go test ./... 2>&1 | tail -20", "go build ./... && go vet ./...", "make test", "make PREFIX=/usr all", "npm test -- --watch=false",
	"npm test 2>&1 | grep -v warn | tail", "find . -name '*.go' -type f", "find . -name \"*.md\" | wc -l", "find . -exec ls {} \\;",
	"sort a | uniq -c | sort -rn | head", "wc -l a b", "head -n 5 README.md; tail -n 5 README.md", "echo 'done'", "echo \"a  b\" '' c",
	"echo a#b c#", "echo a!b 'c!d'", "echo x >new", "echo x >> b", "ls > victim 2>&1", "ls >/dev/null 2>&1", "ls &>/dev/null || echo no",
	"ls nothing 2>/dev/null", "cat < README.md", "cat <README.md >new", "sort <a >>b", "test -f a && echo yes || echo no",
	"[ -f a ] && cat a", "[ a = b ] || echo 'not the same'", "true && false || true", "sed -n '1,5p' main.go", "sed -e 's/a/b/' a",
	"awk '{print $1}' a", "jq '.a[0]' x", "curl -s 'http://localhost/?a=b&c=d'", "python3 -c 'print(1)'", "ls;ls", "ls ; ls;", "ls\nls -l\n",
	"ls |\ncat", "ls &&\n  cat a", "git status \\\n  --short \\\n  --branch", "echo \"a\nb\"", "echo 'a\nb' | cat", "./evil", "sub/ls a",
	"nothere a", "nothere a || ls", "ls -- -R", "ls -I'*.o'", "date +%Y-%m-%d", "ls a,b a:b a@b a+b a%b a^b a=b -a=b --a=b", "ls \"$\" \"a$ b\"",
	"ls \"\\\\\" \"\\$x\" \"\\`\" '\\'", "ls é ü 'é' \"日本\"", "make a=b c=d", "env", "sleep 1 &", "ls & cat a", "cd sub && ls", "cd sub && cat file >new && git log || ls", "command -v git && git log", "command ls -l", "printf '%s\\n' a b | cat", "pwd; ls", "type ls", "ls || exit 1; cat a", ": && ls",
	"echo a | xargs ls", "find . -name '*.go' -exec grep -l a {} +", "timeout 5 ls", "env ls", "nice -n 5 ls", "ls | cat | cat && ls | cat",
}

// odd are the bytes and tokens that are put into scripts.
var odd = []string{
	"\r", "\r\n", "\\\r\n", "\\\n", " \\\n", " \\\n ", "\n", "\n\n", " ", "  ", "\t", "\\ ", "\\\t", "\v", "\f", "\x01", "\x02", "\x7f", "\x08", "\x1b[1G",
	"\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\ufeff", "\u200b", "\u202e", "\u3164", "é", "日", "\xff", "\xc3", "\xa0", "\u0301",
	"$", "$x", "${x}", "$(", "$(ls)", "$((", "$'", "$'a'", "$\"", "$\"a\"", "$1", "$$", "$[1]", "`", "`ls`", "!", "!!", "!x", "#", " #", " # x", ";#", "a#b",
	"~", " ~", "~/", "=~", ":~", " x=~", " x=a:~", " ~root", "=", "+=", " =", "[", "]", "[a]", "[a-z]", " [ ", " ] ", "[[", " [[ ", "]]", "{", "}", "{}", "{a,b}",
	"{1..2}", "@{0}", "@{u}", "@{a,b}", "@{1..2}", "(", ")", "()", "@(a)", "!(a)", "+(a)", "?(a)", "*(a)", "*", "?", "a*", "%", "@", "^", "-", "--", ",", ":", ".", "..", "/",
	"<", ">", ">>", "<<", "<<<", "<>", ">&", "<&", ">|", "&>", "&>>", ">&2", "2>", "2>&1", "1>&2", ">&1", ">&-", "2>&-", "3>", "12>", "0<", "1<", "0>", "{fd}>", "{x}<", "2>&1-",
	"|", "||", "|&", " | ", " || ", "&", " & ", "&&", " && ", ";", "; ", ";;", ";&", ";&>new ", "|&>new ", "&&\n", "|\n", "||\n", ";\n", "\n;", "&\n",
	"'", "\"", "\\", "\\\\", "\\'", "\\\"", "\\$", "\\`", "\\!", "\\#", "\\~", "\\*", "\\a", "\\n", "''", "\"\"", "'a b'", "\"a b\"", "'\\''", "\"'\"", "'\"'", "\"\\\"\"", "'\n'", "\"\n\"",
	" ''", " \"\"", "\\\"", "\"\\\\\"", "\"\\a\"", "\"\\\n\"", "\"!\"", "\"$\"", "\"$ \"", "\"a$|\"", "\"$)\"", "\"$'\"",
	"x=1 ", "PATH=./evil ", "HOME=./evil ", "GIT_DIR=./evil ", "a[0]=1 ", "a+=b ", " a=b", "a=(b) ", "PATH=./evil;",
	"if ", "then ", "fi", "time ", "time -p ", "! ", "{ ", "; }", "( ", " )", "coproc ", "function ", "for x in a; do ", "; done", "case x in x) ", ";; esac", "in ", "do ", "select ",
	"eval ", "exec ", "command ", "builtin ", "export x=2;", "cd sub;", "cd sub && ", "set -f;", "unset x;", "declare x=2;", ". ./evil;", "trap ls EXIT;", "alias ls=evil\n",
	"f() { evil; };", "ls() { evil; };", "((x=2));", "[[ a ]] && ", "let x=2;", "read x;", "printf -v x 2;", "test -v x;", ":;", "umask 0;", "shopt -s extglob\n", "IFS=a;", "enable ls;", "printf 'a%n' PATH;", "printf -- %n x; ", "printf %s a | ", "cd sub && ", "cd nothing || ", "cd nothing && ", "cd ./sub &&\n", "command ", "command -- ", "exit;", "exit 1 || ", ": >new;", "pwd && ",
	" </dev/null", " >/dev/null", " >victim", " >new", " <README.md", " >>b", " 2>new", " '2'>new", " \\2>new", " \"1\">&2", " 2>&1", " >&2", " &>new", " >|victim", " <nothing", " >sub", " >sub/new", " >sub/no/new", " 3>new", " <>new", " >a >b", " <a <b", " >/tmp/new", " >../new", " >/dev/nullx",
	"<<EOF\nls\nEOF\n", "<<'EOF'\n", "<<-EOF\n", "<<<a", "<(ls)", ">(ls)", "git", "evil", "./evil", "sudo ", "ls", "cat", "a", "b", "x", "1", "2", "0", "12", "-R", "sub", "main.go",
}

// joints join two scripts to one.
var joints = []string{" && ", " || ", " | ", "; ", "\n", "&&", "||", "|", ";", " &&\n", " |\n", ";\n", " & ", " |& ", " ", ""}

// A generator makes scripts from others. It is deterministic.
type generator struct {
	rand *rand.Rand
	pool []string
	base int // number of scripts at the start of the pool that are never replaced
}

// maxKept is the number of scripts that are kept to be changed further.
const maxKept = 4000

func newGenerator(t testing.TB, seed uint64) *generator {
	pool := readCorpus(t)
	for half := 2 * len(pool); len(pool) < half; { // most of the corpus is never allowed, and these are
		pool = append(pool, ordinary...)
	}
	return &generator{rand: rand.New(rand.NewPCG(seed, 0)), pool: pool, base: len(pool)}
}

// readCorpus returns the command lines of the corpus that are not too long to be changed.
// They are the JSON strings that stand second in the lines of its files.
func readCorpus(t testing.TB) []string {
	files, err := filepath.Glob("../testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there is no corpus in ../testdata:", err)
	}
	var list []string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			at := strings.IndexByte(line, '"')
			var command string
			if at > 0 && line[0] != '#' && json.NewDecoder(strings.NewReader(line[at:])).Decode(&command) == nil && len(command) < 400 {
				list = append(list, command)
			}
		}
	}
	return list
}

// next returns a new script.
func (g *generator) next() string {
	s := g.pick()
	for range 1 + g.rand.IntN(2) + g.rand.IntN(3)/2 {
		s = g.mutate(s)
	}
	return s
}

// pick returns a script of the pool.
func (g *generator) pick() string { return g.pool[g.rand.IntN(len(g.pool))] }

// keep puts a script that was judged into the pool, so that others are made from it.
func (g *generator) keep(s string) {
	switch {
	case len(s) > 200:
	case len(g.pool)-g.base < maxKept:
		g.pool = append(g.pool, s)
	default:
		g.pool[g.base+g.rand.IntN(len(g.pool)-g.base)] = s
	}
}

func oneOf(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// mutate changes a script in one place.
func (g *generator) mutate(s string) string {
	at := g.rand.IntN(len(s) + 1)
	to := min(len(s), at+1+g.rand.IntN(8))
	switch g.rand.IntN(14) {
	case 0, 1, 2: // put something odd anywhere
		return s[:at] + oneOf(g.rand, odd) + s[at:]
	case 3: // put something odd in the place of something
		return s[:at] + oneOf(g.rand, odd) + s[to:]
	case 4: // remove something
		return s[:at] + s[to:]
	case 5: // repeat something
		return s[:to] + s[at:]
	case 6: // the start of this one and the end of another one
		other := g.pick()
		return s[:at] + other[g.rand.IntN(len(other)+1):]
	case 7: // two scripts
		return s + oneOf(g.rand, joints) + g.pick()
	case 8, 9: // quote something
		return s[:at] + g.quote(s[at:to]) + s[to:]
	case 10: // put something odd before or after the script
		if g.rand.IntN(2) == 0 {
			return oneOf(g.rand, odd) + s
		}
		return s + oneOf(g.rand, odd)
	default:
		return g.mutateWords(s)
	}
}

// quote writes a text in another way, which often means the same.
func (g *generator) quote(s string) string {
	switch g.rand.IntN(6) {
	case 0:
		return "'" + s + "'"
	case 1:
		return `"` + s + `"`
	case 2:
		return `\` + s
	case 3:
		return "''" + s
	case 4:
		return shellQuote(s)
	default:
		return "$'" + s + "'"
	}
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// mutateWords changes a script between its words.
func (g *generator) mutateWords(s string) string {
	words := strings.Split(s, " ")
	i, j := g.rand.IntN(len(words)), g.rand.IntN(len(words))
	switch g.rand.IntN(5) {
	case 0:
		words[i], words[j] = words[j], words[i]
	case 1:
		words[i] += " " + oneOf(g.rand, odd)
	case 2:
		words[i] = g.quote(words[i])
	case 3:
		words[i] = oneOf(g.rand, odd)
	case 4: // another blank
		blank := oneOf(g.rand, []string{"\t", "  ", " \\\n", "\\\n", "\n", "\r", "\u00a0", "\v", "\f", "\r\n", " \\\r\n"})
		return strings.Join(words[:i], " ") + blank + strings.Join(words[i:], " ")
	}
	return strings.Join(words, " ")
}
