package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drivebay/drivebay/hack/lab/agent"
)

const execDir = "/tmp/lab-exec"

// Exec runs a binary of this machine in the guest: what `go test -exec` asks
// for. What a test binary writes for the go command is brought home.
func Exec(ctx context.Context, guest *agent.Client, dir, binary string, args []string, streams agent.Streams) (err error) {
	f, err := os.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	inside := execDir + "/" + filepath.Base(binary)
	if err := guest.Put(ctx, inside, 0o755, f); err != nil {
		return err
	}
	files := map[string]string{} // here -> there
	for i, a := range args {
		flag, value, _ := strings.Cut(a, "=")
		switch flag {
		case "-test.coverprofile", "-test.testlogfile", "-test.cpuprofile", "-test.memprofile", "-test.trace":
			files[value] = fmt.Sprintf("%s/file%d", execDir, i)
			args[i] = flag + "=" + files[value]
		case "-test.gocoverdir":
			if _, err := guest.Output(ctx, "mkdir", "-p", guestCover); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, fetchCover(ctx, guest, value)) }()
			args[i] = flag + "=" + guestCover
		}
	}
	p, err := guest.Start(ctx, agent.Command{Argv: append([]string{inside}, args...), Dir: dir}, streams)
	if err != nil {
		return err
	}
	err = p.Wait()
	for here, there := range files {
		b, err2 := guest.Get(ctx, there)
		if errors.Is(err2, os.ErrNotExist) {
			continue // it ended before it wrote one
		}
		if err2 == nil {
			err2 = os.WriteFile(here, b, 0o644)
		}
		err = errors.Join(err, err2)
	}
	return err
}
