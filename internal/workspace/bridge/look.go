package bridge

import (
	"context"

	"github.com/abide-run/abide/internal/approval/disk"
	pb "github.com/abide-run/abide/internal/workspace/workspacepb"
)

// Look implements the service.
func (s *service) Look(ctx context.Context, r *pb.LookRequest) (*pb.LookResponse, error) {
	asked := make([]disk.Question, len(r.GetQuestions()))
	for i, q := range r.GetQuestions() {
		asked[i] = disk.Question{Kind: disk.Kind(q.GetKind()), Path: string(q.GetPath()), With: string(q.GetWith())}
	}
	found, err := s.ws.Files.Look(ctx, asked...)
	if err != nil {
		return nil, toWire(err)
	}
	answer := new(pb.LookResponse)
	for _, a := range found {
		answer.Answers = append(answer.Answers, &pb.LookResponse_Answer{Ok: a.OK, Text: []byte(a.Text), More: []byte(a.More)})
	}
	return answer, nil
}

// Look implements workspace.Files.
func (c remoteFiles) Look(ctx context.Context, asked ...disk.Question) ([]disk.Answer, error) {
	request := new(pb.LookRequest)
	for _, q := range asked {
		request.Questions = append(request.Questions, &pb.LookRequest_Question{Kind: pb.LookRequest_Kind(q.Kind), Path: []byte(q.Path), With: []byte(q.With)})
	}
	r, err := c.rpc.Look(ctx, request)
	if err != nil {
		return nil, fromWire(ctx, err)
	}
	if len(r.GetAnswers()) != len(asked) {
		return nil, errUnanswered
	}
	list := make([]disk.Answer, len(asked))
	for i, a := range r.GetAnswers() {
		list[i] = disk.Answer{OK: a.GetOk(), Text: string(a.GetText()), More: string(a.GetMore())}
		if err := checkLooked(list[i], asked[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}
