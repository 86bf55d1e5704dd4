package daemon

import (
	"fmt"

	"github.com/abide-run/abide/internal/model"
)

// unknown says that a session asks for a model that there is not.
func unknown(format string, args ...any) error {
	return &model.Error{Kind: model.KindNotFound, Message: fmt.Sprintf(format, args...)}
}
