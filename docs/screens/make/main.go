// Command make draws the pictures of docs/screens from real runs: it types into a chat in
// tmux, and turns what the terminal shows into SVG.
//
//	go run ./docs/screens/make -abide bin/abide            all pictures
//	go run ./docs/screens/make -abide bin/abide -only demo one of them
package main

import (
	"flag"
	"fmt"
	"html"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	program := flag.String("abide", "bin/abide", "the `PROGRAM`")
	dir := flag.String("dir", "docs/screens", "`FOLDER` of the pictures and of scenario.json")
	only := flag.String("only", "", "only pictures whose names contain this `TEXT`")
	flag.Parse()
	path, err := filepath.Abs(*program)
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range scenes {
		if !strings.Contains(s.name, *only) {
			continue
		}
		if err := s.make(path, *dir); err != nil {
			log.Fatalf("%s: %v", s.name, err)
		}
		fmt.Println(s.name)
	}
}

// A scene is a picture: a terminal, and what is typed into it.
type scene struct {
	name          string
	columns, rows int
	theme         theme
	noColour      bool
	command       string   // command line; the chat if it is empty
	steps         []string // keys by the names of tmux, and after "see:" patterns to wait for
	moving        bool     // true for a recording
}

var talk = []string{"see:› ask", "Fix the failing test", "Enter", "see:may it run", "see:es, once", "y", "see:It is fixed", "see:› ask"}

var scenes = []scene{
	{name: "chat-80x24-dark", columns: 80, rows: 24, theme: dark, steps: talk},
	{name: "chat-160x50-light", columns: 160, rows: 50, theme: light, steps: talk},
	{name: "chat-80x24-nocolour", columns: 80, rows: 24, theme: light, noColour: true, steps: talk},
	{name: "chat-question-80x24-dark", columns: 80, rows: 24, theme: dark, steps: talk[:5]},
	{name: "chat-question-160x50-light", columns: 160, rows: 50, theme: light, steps: talk[:5]},
	{name: "chat-sessions-80x24-dark", columns: 80, rows: 24, theme: dark, steps: append(talk[:8:8], "/sessions", "Enter", "see:type to search")},
	{name: "chat-tasks-80x24-light", columns: 80, rows: 24, theme: light, steps: append(talk[:8:8], "C-t", "see:commands of this session", "see:ok 3")},
	{name: "chat-rewind-80x24-dark", columns: 80, rows: 24, theme: dark, steps: append(talk[:8:8], "/rewind", "Enter", "see:would restore")},
	{name: "chat-pager-80x24-dark", columns: 80, rows: 24, theme: dark, steps: append(talk[:8:8], "C-o", "see:conversation")},
	{name: "chat-small-30x8-dark", columns: 30, rows: 8, theme: dark, steps: []string{"see:› ask", "Fix the failing test", "Enter", "see:answer"}},
	{name: "chat-demo", columns: 100, rows: 30, theme: dark, command: "demo", steps: []string{"see:Try next.*\\$ *$"}, moving: true},
}

// A theme has the colours of a terminal: those of its 16 names, of text, and of what is
// behind it.
type theme struct {
	colours    [16]string
	text, back string
}

var (
	dark = theme{[16]string{"#1d1f21", "#cc6666", "#b5bd68", "#f0c674", "#81a2be", "#b294bb", "#8abeb7", "#c5c8c6", "#969896", "#d54e53", "#b9ca4a", "#e7c547", "#7aa6da", "#c397d8", "#70c0b1", "#eaeaea"}, "#c5c8c6", "#1d1f21"}

	light = theme{[16]string{"#000000", "#c82829", "#5f7f00", "#a67f00", "#4271ae", "#8959a8", "#2e7f86", "#8e908c", "#6c6c6c", "#c82829", "#5f7f00", "#a67f00", "#4271ae", "#8959a8", "#2e7f86", "#ffffff"}, "#333333", "#ffffff"}
)

// make plays the scene and writes its picture.
func (s scene) make(program, dir string) error {
	home, err := os.MkdirTemp("", "screens")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	if err := project(home, dir); err != nil {
		return err
	}
	t := tmux{filepath.Join(home, "tmux")}
	defer t.run("kill-server")
	colour := ""
	if s.noColour {
		colour = "1"
	}
	if _, err := t.run("-f", "/dev/null", "set-option", "-g", "default-terminal", "screen-256color", ";", "new-session", "-d", "-x", fmt.Sprint(s.columns), "-y", fmt.Sprint(s.rows),
		"-c", filepath.Join(home, "project"), "-e", "HOME="+home, "-e", "ABIDE_HOME="+filepath.Join(home, ".abide"), "-e", "NO_COLOR="+colour, "-e", "LANG=C.UTF-8",
		"env PS1='$ ' bash --norc"); err != nil {
		return err
	}
	line := "clear; " + program + " --scenario ../scenario.json"
	if s.command != "" {
		line = "clear; " + program + " " + s.command
	}
	if _, err := t.run("send-keys", line, "Enter"); err != nil {
		return err
	}
	var frames []frame
	for _, step := range s.steps {
		pattern, waits := strings.CutPrefix(step, "see:")
		if !waits {
			_, err = t.run("send-keys", step)
		} else {
			frames, err = t.await(pattern, frames)
		}
		if err != nil {
			return err
		}
	}
	if !s.moving {
		frames = frames[len(frames)-1:]
	}
	for len(frames) > 1 && strings.TrimSpace(strings.Join(frames[0].rows, "")) == "" {
		frames = frames[1:] // a recording does not begin with nothing
	}
	return os.WriteFile(filepath.Join(dir, s.name+".svg"), []byte(s.svg(frames)), 0o644)
}

// project makes the folder that the agent of the scenes works in.
func project(home, dir string) error {
	files := map[string]string{
		"project/slug.sh": "# Prints the address of a page.\nprintf '%s\\n' \"$1\" |\n  tr 'A-Z' 'a-z' |\n  sed 's/ /-/'\n",
		"project/test.sh": "for n in 1 2 3; do sleep 0.3; echo \"ok $n\"; done\n",
	}
	scenario, err := os.ReadFile(filepath.Join(dir, "scenario.json"))
	if err != nil {
		return err
	}
	files["scenario.json"] = string(scenario)
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// A tmux is a terminal.
type tmux struct{ socket string }

func (t tmux) run(args ...string) (string, error) {
	out, err := exec.Command("tmux", append([]string{"-S", t.socket}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("tmux %v: %w: %s", args, err, out)
	}
	return string(out), nil
}

// A frame is what a terminal shows from a moment on.
type frame struct {
	at   time.Time
	rows []string // with escape codes
}

var codes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// await adds a frame for each change until the terminal has shown a pattern for a while.
func (t tmux) await(pattern string, frames []frame) ([]frame, error) {
	re := regexp.MustCompile("(?s)" + pattern)
	matches := 0
	for range 400 {
		shown, err := t.run("capture-pane", "-p", "-e")
		if err != nil {
			return frames, err
		}
		rows := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
		if n := len(frames); n == 0 || strings.Join(frames[n-1].rows, "\n") != strings.Join(rows, "\n") {
			frames = append(frames, frame{time.Now(), rows})
		}
		if matches++; !re.MatchString(strings.TrimRight(codes.ReplaceAllString(shown, ""), "\n ")) {
			matches = 0
		}
		if matches == 5 {
			return frames, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return frames, fmt.Errorf("the terminal does not show %s, but:\n%s", pattern, strings.Join(frames[len(frames)-1].rows, "\n"))
}

// Size of a cell and of the margin, in pixels.
const (
	cellWidth  = 8.4
	cellHeight = 18
	margin     = 12
)

// svg draws frames. Several follow each other in their own time, again and again.
func (s scene) svg(frames []frame) string {
	var b strings.Builder
	width, height := float64(s.columns)*cellWidth+2*margin, s.rows*cellHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" fill="%s">`+"\n", width, height, s.theme.text)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", s.theme.back)
	if len(frames) > 1 {
		s.recording(&b, frames)
	} else {
		s.frame(&b, frames[0].rows)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// lastTime is how long the last frame of a recording is shown.
const lastTime = 6 * time.Second

// recording draws frames that follow each other.
func (s scene) recording(b *strings.Builder, frames []frame) {
	begin := frames[0].at
	total := frames[len(frames)-1].at.Sub(begin) + lastTime
	for i, f := range frames {
		from, to := f.at.Sub(begin).Seconds()/total.Seconds(), 1.0
		if i+1 < len(frames) {
			to = frames[i+1].at.Sub(begin).Seconds() / total.Seconds()
		}
		times, values := fmt.Sprintf("0;%.4f;%.4f", from, to), "none;inline;none"
		if i == 0 {
			times, values = fmt.Sprintf("0;%.4f", to), "inline;none"
		}
		if i == len(frames)-1 {
			times, values = fmt.Sprintf("0;%.4f", from), "none;inline"
		}
		shown := "none"
		if i == len(frames)-1 {
			shown = "inline" // what does not move shows the end
		}
		fmt.Fprintf(b, `<g display="%s"><animate attributeName="display" calcMode="discrete" dur="%.2fs" repeatCount="indefinite" keyTimes="%s" values="%s"/>`+"\n", shown, total.Seconds(), times, values)
		s.frame(b, f.rows)
		b.WriteString("</g>\n")
	}
}

// A style is how a part of a row looks.
type style struct {
	text, back                           string
	bold, faint, italic, underline, swap bool
}

// frame draws the rows of a terminal.
func (s scene) frame(b *strings.Builder, rows []string) {
	var now style // goes on in the next row
	for y, row := range rows {
		column := 0
		for row != "" {
			at := codes.FindStringIndex(row)
			if at == nil {
				at = []int{len(row), len(row)}
			}
			if part := row[:at[0]]; part != "" {
				s.part(b, part, column, y, now)
				column += len([]rune(part))
			}
			if at[1] > at[0] {
				now = s.theme.apply(now, row[at[0]+2:at[1]-1])
			}
			row = row[at[1]:]
		}
	}
}

// part draws a part of a row.
func (s scene) part(b *strings.Builder, part string, column, row int, now style) {
	if now.swap {
		now.text, now.back = or(now.back, s.theme.back), or(now.text, s.theme.text)
	}
	x, y := margin+float64(column)*cellWidth, margin+row*cellHeight
	length := float64(len([]rune(part))) * cellWidth
	if now.back != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`, x, y, length, cellHeight, now.back)
	}
	if strings.TrimSpace(part) == "" {
		return
	}
	var attributes strings.Builder
	set := func(on bool, attribute string) {
		if on {
			attributes.WriteString(" " + attribute)
		}
	}
	set(now.text != "", `fill="`+now.text+`"`)
	set(now.bold, `font-weight="bold"`)
	set(now.faint, `opacity="0.65"`)
	set(now.italic, `font-style="italic"`)
	set(now.underline, `text-decoration="underline"`)
	fmt.Fprintf(b, `<text x="%.1f" y="%d" textLength="%.1f" xml:space="preserve"%s>%s</text>`+"\n", x, y+14, length, attributes.String(), html.EscapeString(part))
}

// or returns the first text that is not empty.
func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// apply changes a style by the numbers of an escape code.
func (t theme) apply(now style, numbers string) style {
	for number := range strings.SplitSeq(numbers, ";") {
		n := 0
		fmt.Sscan(number, &n)
		switch {
		case n == 0:
			now = style{}
		case n == 1:
			now.bold = true
		case n == 2:
			now.faint = true
		case n == 3:
			now.italic = true
		case n == 4:
			now.underline = true
		case n == 7:
			now.swap = true
		case n >= 30 && n <= 37:
			now.text = t.colours[n-30]
		case n == 39:
			now.text = ""
		case n >= 40 && n <= 47:
			now.back = t.colours[n-40]
		case n == 49:
			now.back = ""
		case n >= 90 && n <= 97:
			now.text = t.colours[n-82]
		}
	}
	return now
}
