package local

import (
	"cmp"
	"context"
	"path/filepath"
	"syscall"
	"time"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// Start implements workspace.Processes.
func (p *processes) Start(ctx context.Context, spec process.Spec) (process.Info, bool, error) {
	spec.Dir = p.files.absolute(spec.Dir)
	if p.roots != nil {
		if err := p.settle(&spec); err != nil {
			return process.Info{}, false, err
		}
	}
	return p.manager.Start(ctx, spec)
}

// settle sets what a command of an engine elsewhere may change: the working directory of its
// session with the repository that it had first, or, for a command that names none, the
// folder that it runs in.
func (p *processes) settle(spec *process.Spec) error {
	if spec.Owner == "" {
		return nil // the start refuses it
	}
	name := p.files.absolute(cmp.Or(spec.Root, spec.Dir))
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		spec.Root = ""
		return nil // the start says what is wrong with the folder
	}
	roots, err := p.roots(cmp.Or(spec.Family, spec.Owner))
	if err != nil {
		return err
	}
	pin := roots.PinAny
	if spec.Root != "" {
		pin = roots.Pin
	}
	spec.Root = real
	spec.Repository, err = pin(name, real)
	return err
}

// Find implements workspace.Processes.
func (p *processes) Find(_ context.Context, owner process.Owner, key string) (process.Info, error) {
	return p.manager.Find(owner, key)
}

// Get implements workspace.Processes.
func (p *processes) Get(_ context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	return p.manager.Get(owner, id)
}

// List implements workspace.Processes.
func (p *processes) List(_ context.Context, owner process.Owner) ([]process.Info, error) {
	return p.manager.List(owner)
}

// Wait implements workspace.Processes.
func (p *processes) Wait(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	return p.manager.Wait(ctx, owner, id)
}

// Read implements workspace.Processes.
func (p *processes) Read(ctx context.Context, owner process.Owner, id process.ID, r process.ReadRequest) (process.Chunk, error) {
	r.Limit = min(r.Limit, workspace.MaxOutput)
	return p.manager.Read(ctx, owner, id, r)
}

// Tail implements workspace.Processes.
func (p *processes) Tail(_ context.Context, owner process.Owner, id process.ID, n int, stream process.Stream) (process.Chunk, error) {
	return p.manager.Tail(owner, id, min(n, workspace.MaxOutput), stream)
}

// View implements workspace.Processes.
func (p *processes) View(_ context.Context, owner process.Owner, id process.ID, stream process.Stream) (string, *process.TruncationInfo, error) {
	return p.manager.View(owner, id, stream)
}

// WriteStdin implements workspace.Processes.
func (p *processes) WriteStdin(ctx context.Context, owner process.Owner, id process.ID, in process.Input) error {
	return p.manager.WriteStdin(ctx, owner, id, in)
}

// Consume implements workspace.Processes.
func (p *processes) Rest(ctx context.Context, owner process.Owner, id process.ID, after time.Duration) error {
	return p.manager.Rest(ctx, owner, id, after)
}

func (p *processes) Consume(ctx context.Context, owner process.Owner, id process.ID, offset int64) error {
	return p.manager.Consume(ctx, owner, id, offset)
}

// Resize implements workspace.Processes.
func (p *processes) Resize(ctx context.Context, owner process.Owner, id process.ID, size process.Size) error {
	return p.manager.Resize(ctx, owner, id, size)
}

// Signal implements workspace.Processes.
func (p *processes) Signal(ctx context.Context, owner process.Owner, id process.ID, sig syscall.Signal) error {
	return p.manager.Signal(ctx, owner, id, sig)
}

// Stop implements workspace.Processes.
func (p *processes) Stop(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	return p.manager.Stop(ctx, owner, id)
}

// Interrupt implements workspace.Processes.
func (p *processes) Interrupt(ctx context.Context, owner process.Owner, id process.ID) (process.Info, error) {
	return p.manager.Interrupt(ctx, owner, id)
}

// MarkSeen implements workspace.Processes.
func (p *processes) MarkSeen(_ context.Context, owner process.Owner, id process.ID) error {
	return p.manager.MarkSeen(owner, id)
}
