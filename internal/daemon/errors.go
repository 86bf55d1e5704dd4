package daemon

import (
	"fmt"

	"github.com/abide-run/abide/internal/model"
)

// unknown returns the error for a model or provider that does not exist.
func unknown(format string, args ...any) error {
	return &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf(format, args...)}
}
