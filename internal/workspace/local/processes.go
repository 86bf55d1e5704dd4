package local

import (
	"context"
	"syscall"

	"github.com/abide-run/abide/internal/process"
	"github.com/abide-run/abide/internal/workspace"
)

// Start implements workspace.Processes.
func (p *processes) Start(ctx context.Context, spec process.Spec) (process.Info, bool, error) {
	spec.Dir = p.files.absolute(spec.Dir)
	return p.manager.Start(ctx, spec)
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
