//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/install"
)

// serviceKind is the system's word for a service, serviceName cniscope's there.
const (
	serviceKind = "unit"
	serviceName = "cniscope.service"

	notInstalled = "cniscope is not installed; run cniscope install, or install its package"
)

func installed(ctx context.Context, root string, file optionsFile) (*install.Status, error) {
	if file.path == "" {
		return install.Look(ctx, root, nil)
	}
	source := file.source()
	return install.Look(ctx, root, &source)
}

func installation() []*cobra.Command {
	return []*cobra.Command{installCmd(), uninstallCmd(), packagedCmd()}
}

func installCmd() *cobra.Command {
	var o install.Options
	var format string
	var dryRun bool
	as, ways := string(install.Service), []string{string(install.Service), string(install.Plugin)}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install cniscope on this node and connect it to containerd",
		Long: `Install cniscope on this node: the program (/usr/local/bin/cniscope, or
/opt/bin/cniscope where /usr is read-only), its configuration file
(/etc/cniscope/cniscope.toml), and one of these:

  --as service   a systemd unit, which connects to containerd. It survives a restart of
                 containerd, and logs to the journal (recommended).
  --as plugin    a pre-installed NRI plugin, which containerd starts.

If NRI is off, install adds a drop-in to containerd's configuration and asks you
to restart containerd. If k3s, RKE2, nodeadm or AKS writes that configuration, install does not
change it, but prints the lines to add. On Talos, Bottlerocket and Container-Optimized
OS nothing can be installed: run the DaemonSet.

install either completes or changes nothing. To upgrade, run it again: it keeps your edits and
your choices. It never restarts containerd, and changes no existing file, except for one
import line in containerd's configuration.`,
		Example: `  cniscope install --dry-run          print the changes
  cniscope install
  cniscope install --root /mnt/image  into an image's file tree`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := remember(cmd, &o, &as); err != nil {
				return err
			}
			var err error
			if o.Program, err = os.Executable(); err != nil {
				return err
			}
			plan, err := install.New(cmd.Context(), o)
			if err != nil {
				return err
			}
			return carryOut(cmd, plan, dryRun, o.Root, format)
		},
	}
	formatFlag(cmd, &format)
	f := cmd.Flags()
	f.Var(choice{&as, ways}, "as", "service or plugin")
	f.BoolVar(&dryRun, "dry-run", false, "print the changes as a unified diff, and change nothing")
	f.StringVar(&o.Root, "root", "/", "install into the file tree below this directory, for an image")
	f.StringVar(&o.ContainerdConfig, "containerd-config", "", "containerd's configuration (default /etc/containerd/config.toml)")
	f.StringVar(&o.ContainerdVersion, "containerd-version", "", "containerd's version, if containerd is not running")
	f.BoolVar(&o.EditConfig, "edit-config", false, "let containerd's configuration import drop-ins, if it does not")
	f.BoolVar(&o.NoContainerd, "no-containerd", false, "leave containerd's configuration alone")
	return cmd
}

func remember(cmd *cobra.Command, o *install.Options, as *string) error {
	before, _, err := install.Remembered(o.Root)
	if err != nil {
		return err
	}
	flag := cmd.Flags().Changed
	if !flag("as") && before.As != "" {
		*as = string(before.As)
	}
	o.As = install.As(*as)
	if !flag("containerd-config") {
		o.ContainerdConfig = before.ContainerdConfig
	}
	if !flag("edit-config") {
		o.EditConfig = before.EditConfig
	}
	if !flag("no-containerd") {
		o.NoContainerd = before.NoContainerd
	}
	return nil
}

func carryOut(cmd *cobra.Command, plan *install.Plan, dryRun bool, root, format string) error {
	out := cmd.OutOrStdout()
	if dryRun && format == "json" {
		return command.Indented(out, newPlanDocument(plan))
	}
	if dryRun {
		if !plan.Changes() {
			fmt.Fprintln(out, "nothing would be changed")
		}
		fmt.Fprint(out, plan.Diff())
		return notes(out, plan.Notes)
	}
	more, err := plan.Apply(cmd.Context())
	if err != nil {
		if errors.Is(err, os.ErrPermission) && os.Geteuid() != 0 {
			err = fmt.Errorf("%w; run as root", err)
		}
		return err
	}
	plan.Notes = append(plan.Notes, more...)
	if format == "json" {
		return command.Indented(out, newPlanDocument(plan))
	}
	for _, s := range plan.Steps {
		line := fmt.Sprintf("%-9s %s", s.Does, filepath.Join(root, s.Path))
		if s.Why != "" {
			line += ": " + s.Why
		}
		fmt.Fprintln(out, line)
	}
	return notes(out, plan.Notes)
}

// planDocument is docs/schemas/install.json.
type planDocument struct {
	Schema  string         `json:"schema"`
	Changes bool           `json:"changes"`
	Steps   []install.Step `json:"steps"`
	Notes   []string       `json:"notes"`
}

func newPlanDocument(p *install.Plan) planDocument {
	steps, notes := append([]install.Step{}, p.Steps...), append([]string{}, p.Notes...)
	return planDocument{"cniscope.dev/install/v1", p.Changes(), steps, notes}
}

func notes(out io.Writer, notes []string) error {
	for _, n := range notes {
		if _, err := fmt.Fprintf(out, "\n%s\n", n); err != nil {
			return err
		}
	}
	return nil
}

func uninstallCmd() *cobra.Command {
	var purge, dryRun bool
	root, format := "/", ""
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove what cniscope install added to this node",
		Long: `Remove what cniscope install added to this node, and restore the previous state. Files that
you changed, such as the configuration file, stay unless you add --purge. The spool
([export.spool]) always stays.

uninstall does not restart containerd, but prints whether you need to.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			plan, err := install.NewRemoval(install.Options{Root: root}, purge)
			if err != nil {
				return err
			}
			return carryOut(cmd, plan, dryRun, root, format)
		},
	}
	formatFlag(cmd, &format)
	f := cmd.Flags()
	f.BoolVar(&purge, "purge", false, "also remove files that you changed")
	f.BoolVar(&dryRun, "dry-run", false, "print the changes as a unified diff, and change nothing")
	f.StringVar(&root, "root", root, "uninstall from the file tree below this directory")
	return cmd
}

// packagedCmd is for scripts of deb and rpm packages (configs/release/nfpm), whose output users see.
func packagedCmd() *cobra.Command {
	root := "/"
	cmd := &cobra.Command{
		Use:    "packaged",
		Short:  "What the scripts of packages call",
		Hidden: true,
	}
	verb := func(name, short string, do func(cmd *cobra.Command) error) {
		cmd.AddCommand(&cobra.Command{
			Use: name, Short: short, Args: cobra.NoArgs, Hidden: true,
			RunE: func(cmd *cobra.Command, _ []string) error { return do(cmd) },
		})
	}
	verb("configure", "Take over from cniscope install, and say what is left to the operator", func(cmd *cobra.Command) error {
		return takeOver(cmd, root)
	})
	verb("check", "Say whether the service can be started with the options that are there", func(*cobra.Command) error {
		if _, err := (&optionsFile{path: defaultOptionsFile()}).load(); err != nil {
			return fmt.Errorf("not started again, so that what runs goes on: %w; after that: systemctl restart cniscope", err)
		}
		return nil
	})
	verb("remove", "Take back what cniscope install added to containerd, and note where the spool is", func(cmd *cobra.Command) error {
		return handBack(cmd, root)
	})
	return cmd
}

func takeOver(cmd *cobra.Command, root string) error {
	out := cmd.OutOrStdout()
	plan, err := install.NewTakeOver(root)
	if err != nil {
		return err
	}
	if plan != nil {
		fmt.Fprintln(out, "cniscope was installed by cniscope install before: the package takes over")
		if err := carryOut(cmd, plan, false, root, "text"); err != nil {
			return err
		}
	}
	return notes(out, install.AdvisePackaged(cmd.Context(), root))
}

func handBack(cmd *cobra.Command, root string) error {
	if o, err := (&optionsFile{path: defaultOptionsFile()}).load(); err == nil {
		if err := noteElsewhere(root, o.Export.Spool.Dir, o.BaselineFolder()); err != nil {
			fmt.Fprintf(cmd.ErrOrStderr(),
				"cniscope: a spool or baseline outside of %s stays when the package is purged: %v\n", stateFolder, err)
		}
	}
	if _, installed, err := install.Remembered(root); err != nil || !installed {
		return err
	}
	plan, err := install.NewRemoval(install.Options{Root: root}, true)
	if err != nil {
		return err
	}
	return carryOut(cmd, plan, false, root, "text")
}

const stateFolder = "/var/lib/cniscope"

// noteElsewhere notes directories outside of /var/lib/cniscope for the purge, which has no options.
func noteElsewhere(root string, dirs ...string) error {
	var lines []string
	for _, dir := range dirs {
		dir, none := filepath.Clean(dir), dir == ""
		switch {
		case none || slices.Contains(lines, dir) || dir == stateFolder || strings.HasPrefix(dir, stateFolder+"/"):
		case !filepath.IsAbs(dir) || strings.ContainsAny(dir, "\n\r"):
			return fmt.Errorf("%q cannot be written down", dir)
		default:
			lines = append(lines, dir)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(root, stateFolder), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, stateFolder, "spool-elsewhere"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}
