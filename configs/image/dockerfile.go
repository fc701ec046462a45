package image

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

type recipe struct {
	config  ocispec.ImageConfig
	copies  []copied
	created *time.Time // not from the Dockerfile
}

type copied struct {
	from, to string
	mode     int64
}

// readRecipe fails for unknown instructions, so that the result always equals Docker's.
func readRecipe(r io.Reader, arch string) (recipe, error) {
	out := recipe{config: ocispec.ImageConfig{Labels: map[string]string{}}}
	args := map[string]string{}
	scanner := bufio.NewScanner(r)
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := out.instruction(line, arch, args); err != nil {
			return recipe{}, fmt.Errorf("line %d, %q: %w", n, line, err)
		}
	}
	return out, scanner.Err()
}

var errUnknown = errors.New("not known here: teach configs/image/dockerfile.go, or do without")

func (r *recipe) instruction(line, arch string, args map[string]string) error {
	name, rest, _ := strings.Cut(line, " ")
	if strings.HasSuffix(rest, `\`) {
		return fmt.Errorf("continued lines are %w", errUnknown)
	}
	rest = os.Expand(strings.TrimSpace(rest), func(v string) string { return args[v] })
	switch name {
	case "FROM":
		if rest != "scratch" {
			return fmt.Errorf("any image but scratch is %w", errUnknown)
		}
	case "ARG":
		if rest != "TARGETARCH" {
			return errUnknown
		}
		args[rest] = arch
	case "LABEL":
		key, quoted, _ := strings.Cut(rest, "=")
		var value string
		if err := json.Unmarshal([]byte(quoted), &value); err != nil {
			return fmt.Errorf("the label: %w", err)
		}
		r.config.Labels[key] = value
	case "COPY":
		mode := int64(0o755)
		if octal, ok := strings.CutPrefix(rest, "--chmod="); ok {
			octal, rest, _ = strings.Cut(octal, " ")
			var err error
			if mode, err = strconv.ParseInt(octal, 8, 64); err != nil {
				return fmt.Errorf("the mode: %w", err)
			}
		}
		fields := strings.Fields(rest)
		if len(fields) != 2 || strings.HasPrefix(rest, "-") || strings.HasSuffix(rest, "/") {
			return fmt.Errorf("anything but COPY [--chmod=OCTAL] FILE FILE is %w", errUnknown)
		}
		r.copies = append(r.copies, copied{from: fields[0], to: strings.TrimPrefix(fields[1], "/"), mode: mode})
	case "USER":
		r.config.User = rest
	case "ENTRYPOINT":
		return list(rest, &r.config.Entrypoint)
	case "CMD":
		return list(rest, &r.config.Cmd)
	default:
		return errUnknown
	}
	return nil
}

func list(text string, to *[]string) error {
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return fmt.Errorf("the command has to be a list, for there is no shell: %w", err)
	}
	return nil
}
