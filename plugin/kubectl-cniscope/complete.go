package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cniscope/cniscope/pkg/terminal"
)

const completionPatience = 3 * time.Second

func completions(root *cobra.Command, o *options) {
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "why":
			cmd.ValidArgsFunction = once(o.pods)
		case "record":
			cmd.ValidArgsFunction = once(func(ctx context.Context, prefix string) []string {
				if strings.HasPrefix(prefix, "node/") {
					return o.nodesNamed(ctx, "node/", prefix)
				}
				return append(o.pods(ctx, prefix), "node/")
			})
		case "ps", "top":
			cmd.ValidArgsFunction = o.nodesAfter("node/")
		case "doctor":
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
				names, directive := o.nodesAfter("")(cmd, args, prefix)
				return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
			}
		}
	}
	_ = root.RegisterFlagCompletionFunc("node", o.nodesAfter(""))
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"},
		cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(terminal.Modes(),
		cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("context",
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			config, err := o.kube.RawConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
		})
}

func once(names func(ctx context.Context, prefix string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := names(cmd.Context(), prefix)
		directive := cobra.ShellCompDirectiveNoFileComp
		if slices.Contains(found, "node/") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return found, directive
	}
}

func (o *options) pods(ctx context.Context, prefix string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	c, err := o.connect()
	if err != nil {
		return nil
	}
	namespace, err := o.namespace()
	if err != nil {
		return nil
	}
	before := ""
	if in, name, both := strings.Cut(prefix, "/"); both {
		namespace, before, prefix = in, in+"/", name
	}
	names, _ := c.PodNames(ctx, namespace, prefix)
	for i := range names {
		names[i] = before + names[i]
	}
	return names
}

func (o *options) nodesAfter(before string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return o.nodesNamed(cmd.Context(), before, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

func (o *options) nodesNamed(ctx context.Context, before, prefix string) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	c, err := o.connect()
	if err != nil {
		return nil
	}
	readers, _ := c.Readers(ctx, o.home)
	for _, r := range readers {
		if name := before + r.Node; strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
