package bash

import (
	"context"

	"github.com/abide-run/abide/internal/approval"
	"github.com/abide-run/abide/internal/approval/disk"
	"github.com/abide-run/abide/internal/approval/scope"
	"github.com/abide-run/abide/internal/tool"
	"github.com/abide-run/abide/internal/workspace"
)

// maxRounds is how often a command is read again with what was found out about it: one
// answer can raise further questions, such as where the folder leads that a link leads to.
// What is not known then is asked of a person.
const maxRounds = 6

// readThere reads a command with what is known on the machine that it is to run on.
func (c *Commands) readThere(ctx context.Context, call tool.Call, in approval.Surroundings, read func(approval.Surroundings) (*approval.Request, error)) (*approval.Request, error) {
	there, err := c.elsewhere(ctx, call)
	if err != nil {
		return nil, err
	}
	if there == nil {
		return read(in)
	}
	known := disk.NewKnown()
	in.Disk = known
	for range maxRounds {
		ask, err := read(in)
		if err != nil || known.Complete() {
			return ask, err
		}
		if err := learn(ctx, there, in.Scope, known); err != nil {
			return nil, err
		}
	}
	return read(in)
}

// elsewhere returns the files of the machine that the commands of a call run on; nil for
// this one.
func (c *Commands) elsewhere(ctx context.Context, call tool.Call) (workspace.Scoped, error) {
	if c.Elsewhere == nil {
		return nil, nil
	}
	return c.Elsewhere(ctx, call)
}

// learn asks for what is lacking. What is too much to be asked at once is left: it is asked
// in the next round.
func learn(ctx context.Context, there workspace.Scoped, s *scope.Scope, known *disk.Known) error {
	questions, judged := known.Lacking()
	known.Restart()
	questions = questions[:min(len(questions), workspace.MaxLooks)]
	if len(questions) > 0 {
		answers, err := there.Look(ctx, questions...)
		if err != nil {
			return err
		}
		for i, a := range answers {
			known.Learn(questions[i], a)
		}
	}
	judged = judged[:min(len(judged), workspace.MaxLooks)]
	if len(judged) == 0 {
		return nil
	}
	asked := make([]workspace.Question, len(judged))
	for i, j := range judged {
		asked[i] = workspace.Question{Path: j.Path, Mode: j.Mode}
	}
	found, err := there.Judge(ctx, s, asked...)
	if err != nil {
		return err
	}
	for i, j := range found {
		judgement := disk.Judgement{Finding: j.Finding}
		if j.Path == "" { // it cannot be followed
			judgement.Err = j.Err
		}
		known.LearnJudgement(judged[i], judgement)
	}
	return nil
}
