package nri

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/containerd/log"
	"github.com/sirupsen/logrus"

	"github.com/cniscope/cniscope/pkg/text"
)

// stubLog keeps the stub's own log for those who debug: what matters to users is
// said by this package.
type stubLog struct{ log *slog.Logger }

func (l stubLog) Debugf(ctx context.Context, format string, args ...any) { l.say(ctx, format, args) }

func (l stubLog) Infof(ctx context.Context, format string, args ...any) { l.say(ctx, format, args) }

func (l stubLog) Warnf(ctx context.Context, format string, args ...any) { l.say(ctx, format, args) }

func (l stubLog) Errorf(ctx context.Context, format string, args ...any) { l.say(ctx, format, args) }

func (l stubLog) say(ctx context.Context, format string, args []any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "NRI: "+text.Clean(fmt.Sprintf(format, args...), 2*text.Bound))
	}
}

// withTTRPCLog does the same for ttrpc, which logs to the logger of its context
// and otherwise, in another format, to standard error.
func withTTRPCLog(ctx context.Context, to *slog.Logger) context.Context {
	silent := logrus.New()
	silent.SetOutput(io.Discard)
	silent.AddHook(ttrpcHook{stubLog{to}})
	return log.WithLogger(ctx, logrus.NewEntry(silent))
}

type ttrpcHook struct{ log stubLog }

func (ttrpcHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h ttrpcHook) Fire(e *logrus.Entry) error {
	h.log.Errorf(context.Background(), "ttrpc: %s: %v", e.Message, e.Data[logrus.ErrorKey])
	return nil
}
