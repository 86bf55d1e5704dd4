package workspacetest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/workspace"
)

// lookTests are the tests of what the judgement of a command asks.
var lookTests = map[string]func(*testing.T, *Fixture){
	"WhatACommandIsJudgedByIsLookedAtThere": look,
	"TooManyQuestionsAreRefused":            lookTooMuch,
}

func look(t *testing.T, p *Fixture) {
	p.repository(t)
	p.put(t, ".git/config", "[remote \"origin\"]\n\turl = https://x.org/a\n")
	p.put(t, "sub/f", "x")
	p.put(t, "vendored/.git/HEAD", "ref: refs/heads/main\n")
	p.put(t, "shown/.ignore", "!.env\n")
	must(t, os.Symlink("sub", p.at("link")))
	must(t, os.Symlink("nothing", p.at("dangling")))
	real, err := filepath.EvalSymlinks(p.Dir)
	must(t, err)
	for q, want := range map[disk.Question]disk.Answer{
		{Kind: disk.Leads, Path: p.at("link/f")}:                              {OK: true, Text: filepath.Join(real, "sub/f")},
		{Kind: disk.Leads, Path: p.at("dangling")}:                            {},
		{Kind: disk.Folder, Path: p.at("link")}:                               {OK: true},
		{Kind: disk.Folder, Path: p.at("sub/f")}:                              {},
		{Kind: disk.Name, Path: p.at("dangling")}:                             {OK: true},
		{Kind: disk.Name, Path: p.at("none")}:                                 {},
		{Kind: disk.Place, Path: p.at("sub")}:                                 {OK: true, Text: p.Dir},
		{Kind: disk.Place, Path: p.at("vendored")}:                            {OK: true, Text: p.at("vendored")},
		{Kind: disk.Program, Path: "sub/f", With: "/usr/bin:/bin"}:            {},
		{Kind: disk.Program, Path: "no-such-program", With: "/usr/bin:/bin"}:  {},
		{Kind: disk.Program, Path: "f", With: p.at("sub") + ":/usr/bin:/bin"}: {},
		{Kind: disk.Remotes, Path: p.at("sub")}:                               {OK: true, Text: `{"Addresses":{"origin":["https://x.org/a"]},"Defaults":null}`},
		{Kind: disk.Repository, Path: p.at("vendored")}:                       {OK: true, Text: "2"},
		{Kind: disk.Repository, Path: p.at("sub")}:                            {Text: "2"},
		{Kind: disk.Hidden, Path: p.at(".env")}:                               {OK: true},
		{Kind: disk.Hidden, Path: p.at("shown/.env")}:                         {},
		{Kind: 99, Path: p.Dir}:                                               {},
		{}:                                                                    {},
	} {
		found, err := p.Look(t.Context(), q, disk.Question{Kind: disk.Folder, Path: p.Dir})
		if err != nil || len(found) != 2 || found[0] != want || !found[1].OK {
			t.Errorf("%+v: %+v, %v; want %+v", q, found, err, want)
		}
	}
}

func lookTooMuch(t *testing.T, p *Fixture) {
	all := make([]disk.Question, workspace.MaxLooks+1)
	for i := range all {
		all[i] = disk.Question{Kind: disk.Name, Path: p.at(strings.Repeat("x", i%100))}
	}
	_, err := p.Look(t.Context(), all...)
	fails(t, err, workspace.ErrTooMany, "too many questions")
	found, err := p.Look(t.Context(), all[1:]...)
	if err != nil || len(found) != workspace.MaxLooks {
		t.Errorf("%d answers, %v", len(found), err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	_, err = p.Look(ctx, all[0])
	fails(t, err, errEnough, "a look")
}
