package rank_test

import (
	"testing"

	"github.com/abide-run/abide/internal/memory/rank"
)

// notes are what a memory may hold, in four languages.
var notes = []string{
	"The log is kept in SQLite, because it needs no server.",
	"Deployments run on Tuesdays from the release branch.",
	"The staging database listens on port 5433.",
	"Wir verwenden Tabulatoren und keine Leerzeichen.",
	"Die Rechnungen werden am Monatsende verschickt.",
	"Der Server steht in Frankfurt.",
	"Журнал хранится в SQLite, сервер не нужен.",
	"Релизы выходят по вторникам.",
	"Отчёты отправляются бухгалтеру в пятницу.",
	"日志保存在 SQLite 数据库里。",
	"每周二从发布分支部署。",
	"发票在月底寄出。",
}

func TestNaturalQuestionsFindTheirAnswer(t *testing.T) {
	for question, want := range map[string]int{
		"What do we keep the log in?":                   0,
		"On which day do we deploy?":                    1,
		"Which port does the staging database use?":     2,
		"Sollen wir Tabulator oder Leerzeichen nehmen?": 3,
		"Wann verschicken wir die Rechnung?":            4,
		"Wo steht unser Server?":                        5,
		"Где мы храним журналы?":                        6,
		"Когда выходит релиз?":                          7,
		"Кому отправлять отчёт?":                        8,
		"我们的日志保存在哪里？":                                   9,
		"什么时候部署发布分支？":                                   10,
		"发票什么时候寄出？":                                     11,
	} {
		r := rank.New(question)
		for i, text := range notes {
			r.Add(i, text)
		}
		if best, _ := r.Best(1); len(best) != 1 || best[0].Index != want {
			t.Errorf("%q finds %v, want %q", question, best, notes[want])
		}
	}
}

func TestWordsThatSayNothingFindNothing(t *testing.T) {
	for _, question := range []string{"", "what is it?", "и что это?", "!?"} {
		r := rank.New(question)
		if !r.Empty() || len(r.Terms()) != 0 {
			t.Errorf("%q has terms: %q", question, r.Terms())
		}
	}
}

func TestFormsOfAWordAreOneTerm(t *testing.T) {
	for _, forms := range []string{"deploy deploys deployed deploying", "Tabulator Tabulatoren", "Rechnung Rechnungen", "Server Servern servers", "журнал журнала журналов журналы журналами", "Größe grosse", "SQLite sqlite"} {
		terms := rank.Terms(forms)
		for _, term := range terms {
			if term != terms[0] {
				t.Errorf("%s: %q", forms, terms)
				break
			}
		}
	}
	if a, b := rank.Terms("v1.2.30"), rank.Terms("port 5433"); len(a) != 3 || b[1] != "5433" {
		t.Errorf("numbers: %q, %q", a, b)
	}
}

func FuzzRankingsAreBounded(f *testing.F) {
	f.Add("what is the log?", "The log is here.")
	f.Fuzz(func(t *testing.T, question, text string) {
		r := rank.New(question)
		fits := r.Add(0, text)
		best, all := r.Best(1)
		if (len(best) == 1) != fits || all != len(best) || fits && best[0].Score <= 0 {
			t.Errorf("%q of %q: %v, %d", question, text, best, all)
		}
	})
}
