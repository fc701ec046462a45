//go:build linux

package kubernetes

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"

	"github.com/cniscope/cniscope/test/harness"
)

type said struct {
	out, err string
	code     int
}

// kubectl runs the real kubectl as a user with a standard input.
func (c *cluster) kubectl(person, input string, arguments ...string) said {
	c.Helper()
	cmd := exec.CommandContext(c.ctx, c.tool("kubectl"), arguments...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.configOf(person), "HOME="+c.rig.Dir())
	var out, err bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &err
	failed := cmd.Run()
	var ended *exec.ExitError
	if failed != nil && !errors.As(failed, &ended) {
		harness.Check(c, failed)
	}
	return said{out.String(), err.String(), cmd.ProcessState.ExitCode()}
}

func (c *cluster) admin(arguments ...string) string {
	c.Helper()
	s := c.kubectl(admin, "", arguments...)
	if s.code != 0 {
		c.Fatalf("kubectl %s: %d, %s", strings.Join(arguments, " "), s.code, s.err)
	}
	return s.out
}

func (c *cluster) ask(person string, scope *pod, question ...string) said {
	c.Helper()
	return c.kubectl(person, "", append([]string{"exec", "-n", scope.Metadata.Namespace, scope.Metadata.Name, "-c", "reader", "--", "/cniscope-reader", "ask"}, question...)...)
}
